// Starts a job's processes on its hosts, watches them, restarts those that crash, kills those that
// hang, and stops them in order. If another process takes the place of one of them, started by hand
// or elsewhere, the supervisor leaves the place to it. The job ends when its coordinator says so.
// Servers requested while the job runs (leeway resize) are started when its status says so.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/clock.h"
#include "common/exit_code.h"
#include "launcher/supervision/coordinator_client.h"
#include "launcher/supervision/job_process.h"
#include "launcher/supervision/live_view.h"
#include "launcher/supervision/restart_policy.h"
#include "launcher/supervision/signals.h"
#include "launcher/supervision/watchdog.h"
#include "leeway/v1/coordinator.pb.h"

namespace leeway {

struct SupervisorSpec {
  // Holds job.yaml already: a folder, or s3://BUCKET/PREFIX.
  std::string run_dir;
  // On this machine: the processes' logs go to logs/ below it, and the coordinator's address into
  // it.
  std::string local_dir;
  std::string data_dir;
  // What the processes prove who they are with.
  Environment server_environment;
  Environment worker_environment;
  // The program of an external job's workers, with its path and arguments, which is told its place
  // by LEEWAY_COORDINATOR and LEEWAY_RANK; empty: leeway-worker.
  std::vector<std::string> worker_command;
  // By rank, for leeway-worker's --processors; empty: none are chosen.
  std::vector<std::string> worker_processors;
  bool resume = false;
  // The number of servers at the start.
  uint32_t servers = 1;
  uint32_t workers = 1;
  RestartPolicy::Options restarts;
  // How long server 0 may take until it listens.
  double start_seconds = 120;
  // How long a process may be without a sign of life.
  double lease_seconds = 10;
  // Between two looks at the job's status.
  Duration status_every = std::chrono::seconds(1);
  // Whether the run folder's record says that the job is over. Called if server 0 is somebody
  // else's process, whose exit is not seen.
  std::function<bool()> over_on_record;
};

// Hears what happens, on the supervisor's thread.
class RunObserver {
 public:
  virtual ~RunObserver() = default;
  virtual void OnStatus(Time now, const v1::JobStatus& status, const ViewContext& context) = 0;
  // For a person: "worker 1 crashed with signal 9 (Killed); restart 1 of 3".
  virtual void OnEvent(const std::string& text) = 0;
  // The size of the terminal has changed.
  virtual void OnResize() {}
};

struct RunOutcome {
  // Why the run failed; empty if it ended in order.
  std::string failure;
  // With a failure: the exit code for `leeway train` (common/exit_code.h).
  int exit_code = kExitTemporary;
  // A stop was requested.
  bool stop_requested = false;
  // As last heard; absent if the coordinator never answered.
  std::optional<v1::JobStatus> status;
  // By rank, and by index.
  std::vector<uint32_t> worker_restarts;
  std::vector<uint32_t> server_restarts;
};

// One poll loop on the calling thread: exits, signals, the coordinator's answers and timers are
// events; nothing is polled in turns.
class Supervisor {
 public:
  Supervisor(SupervisorSpec spec, JobHosts& hosts, SignalSource& signals, RunObserver& observer);

  // Runs the job to its end. Every child has ended when it returns. An error: the processes could
  // not be started.
  absl::StatusOr<RunOutcome> Run();

 private:
  struct Child {
    bool server = false;
    uint32_t number = 0;
    std::unique_ptr<JobProcess> process;
    // It waits to be started again.
    std::optional<Time> restart_at;
    // Another process, not of this launcher, has its place.
    bool elsewhere = false;
    // Of a worker that has ended in order: so many answers of the coordinator have come since.
    std::optional<uint32_t> answers_since_done;
    // The newest process that has ended.
    pid_t done_pid = 0;
    // What the life of it before this one said last, as it crashed.
    std::string last_line;
  };

  absl::Status Start(Child& child);
  Launch ServerLaunch(uint32_t index) const;
  Launch WorkerLaunch(uint32_t rank) const;
  absl::Status StartTheRest(const std::string& coordinator);
  std::string LogFile(const Child& child) const;

  bool Running() const;
  // Sleeps until something happens or a timer is due.
  absl::Status Wait();
  int PollMilliseconds(Time now) const;
  absl::Status RunTimers(Time now);
  void OnSignal(int signal);
  absl::Status OnNews(Child& child);
  absl::Status OnReady(const std::string& address);
  void OnExit(Child& child, const ExitStatus& exit);
  void OnWorkerExit(Child& child, const ExitStatus& exit);
  void OnServerExit(Child& child, const ExitStatus& exit);
  void TakeStatus();
  // An external worker that ended in order while the job still waits for it would be waited for in
  // vain: if it has never joined the job fails, else it has crashed.
  void LookAfterDone();
  bool HasNotLeft(const Child& worker) const;
  // The watchdog looks at server 0 once it is known which process that is, and where it listens.
  void WatchCoordinator();
  // Kills this launcher's processes that run and do not respond. Their exits do the rest.
  void Kill(const std::vector<Watchdog::Hung>& hung);
  // Server 0 has ended in order. The other processes get some time to end, too.
  void JobIsOver();
  // Starts the servers that the status wants and that do not exist yet.
  absl::Status StartWantedServers();
  // Whether a process that is not this launcher's is registered as this server.
  bool IsSomebodys(const Child& server) const;
  // Says how `child` has ended, with the last line of its log, and starts it again in a while. A
  // program that ends in the same way twice before the job has begun would do so again.
  void RestartAfter(Child& child, const ExitStatus& exit, const RestartPolicy::Decision& decision);
  // Lets the processes end by themselves for as long as `patience`, then ends them: politely, and
  // after some seconds with SIGKILL.
  void Fail(const std::string& reason, const std::string& details, Duration patience,
            const std::string& last_line = "");
  // The last line of its log, to follow a message; a process that was killed said nothing of its
  // end.
  std::string LastLineOf(const Child& child, const ExitStatus& exit) const;
  // The same, because `child` has ended in this way.
  void FailAfter(const Child& child, const ExitStatus& exit, const std::string& reason,
                 Duration patience);
  void SignalAll(int signal);
  // The whole job is to end. SIGTERM to a server would mean that one of them only.
  void EndAll();

  const SupervisorSpec spec_;
  JobHosts& hosts_;
  SignalSource& signals_;
  RunObserver& observer_;
  RestartPolicy policy_;
  Watchdog watchdog_;

  std::vector<Child> children_;
  std::unique_ptr<CoordinatorClient> coordinator_;
  std::string coordinator_address_;
  // The life of server 0 that the watchdog looks at; 0: none.
  pid_t watched_ = 0;
  RunOutcome outcome_;
  ViewContext view_;
  Time next_status_{};
  // As the job's newest status says; absent until one says it after a server has ended in order.
  std::optional<uint32_t> servers_wanted_;
  // An answer of the coordinator has said so.
  bool began_ = false;
  // Server 0 has ended in order.
  bool job_over_ = false;
  Time stop_asked_at_{};
  // When the time for processes that still run is over.
  std::optional<Time> end_at_;
  std::optional<Time> kill_at_;
  Time start_deadline_{};
};

}  // namespace leeway
