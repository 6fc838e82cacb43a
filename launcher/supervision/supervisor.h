// Starts a job's processes on its hosts, watches them, restarts those that crash, kills those that
// hang, and stops them in order. If a process that a person or another launcher has started takes
// the place of one of them, the supervisor leaves the place to that process. The job ends when its
// coordinator says so. When the job's status asks for more servers (leeway resize), the supervisor
// starts them.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/clock.h"
#include "common/exit_code.h"
#include "launcher/supervision/children.h"
#include "launcher/supervision/coordinator_client.h"
#include "launcher/supervision/live_view.h"
#include "launcher/supervision/restart_policy.h"
#include "launcher/supervision/signals.h"
#include "launcher/supervision/supervisor_spec.h"
#include "launcher/supervision/watchdog.h"
#include "leeway/v1/coordinator.pb.h"

namespace leeway {

// Receives events on the supervisor's thread.
class RunObserver {
 public:
  virtual ~RunObserver() = default;
  virtual void OnStatus(Time now, const v1::JobStatus& status, const ViewContext& context) = 0;
  // `text` is for a person, such as "worker 1 crashed with signal 9 (Killed); restart 1 of 3".
  virtual void OnEvent(const std::string& text) = 0;
  // Called when the terminal's size has changed.
  virtual void OnResize() {}
};

struct RunOutcome {
  // The reason why the run failed; empty if it ended in order.
  std::string failure;
  // After a failure, the exit code for `leeway train` (common/exit_code.h).
  int exit_code = kExitTemporary;
  bool stop_requested = false;
  // The last status received; absent if the coordinator never answered.
  std::optional<v1::JobStatus> status;
  // The number of restarts, by rank for workers and by index for servers.
  std::vector<uint32_t> worker_restarts;
  std::vector<uint32_t> server_restarts;
};

// Runs one loop on the calling thread, which sleeps until the next event: an exit, a signal, an
// answer of the coordinator or a timer.
class Supervisor {
 public:
  Supervisor(SupervisorSpec spec, JobHosts& hosts, SignalSource& signals, RunObserver& observer);

  // Runs the job to its end. When this function returns, every child has ended. Returns an error if
  // the processes could not be started.
  absl::StatusOr<RunOutcome> Run();

 private:
  absl::Status Start(Child& child);
  absl::Status StartTheRest(const std::string& coordinator);

  bool Running() const;
  // Sleeps until an event happens or a timer is due.
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
  // Handles external workers that have ended in order although the job still needs them. If such a
  // worker has never joined, the job fails. Otherwise the worker counts as crashed.
  void LookAfterDone();
  bool HasNotLeft(const Child& worker) const;
  // Lets the watchdog observe server 0 once the server's process id and address are known.
  void WatchCoordinator();
  // Kills this launcher's processes that run and do not respond. Their exits are then handled like
  // any other exit.
  void Kill(const std::vector<Watchdog::Hung>& hung);
  // Called when server 0 has ended in order. The other processes get some time to end, too.
  void JobIsOver();
  // Starts the servers that the status asks for and that do not exist yet.
  absl::Status StartWantedServers();
  // Returns true if another launcher's process is registered as this server.
  bool IsSomebodys(const Child& server) const;
  // Reports how `child` has ended, with the last line of its log, and schedules its restart. If an
  // external program ends in the same way twice before the job has begun, the job fails, because
  // the program would do so again.
  void RestartAfter(Child& child, const ExitStatus& exit, const RestartPolicy::Decision& decision);
  // Fails the run for `reason`. Lets the processes end by themselves for at most `patience`. After
  // that, sends them a signal to end in order, and some seconds later SIGKILL.
  void Fail(const std::string& reason, const std::string& details, Duration patience,
            const std::string& last_line = "");
  // Returns the last line of the log of `child`, to follow a message. Returns an empty string for a
  // process that was killed, because its log does not explain its end.
  std::string LastLineOf(const Child& child, const ExitStatus& exit) const;
  // Fails the run for `reason` because `child` has ended with `exit`.
  void FailAfter(const Child& child, const ExitStatus& exit, const std::string& reason,
                 Duration patience);
  void FailAfterServer(const Child& server, const ExitStatus& exit, const std::string& reason);

  const SupervisorSpec spec_;
  SignalSource& signals_;
  RunObserver& observer_;
  RestartPolicy policy_;
  Watchdog watchdog_;

  Children children_;
  std::unique_ptr<CoordinatorClient> coordinator_;
  // The process id of the server 0 that the watchdog observes, or 0.
  pid_t watched_ = 0;
  RunOutcome outcome_;
  ViewContext view_;
  Time next_status_{};
  // The number of servers that the newest status asks for. After a server has ended in order, it is
  // absent until the next status.
  std::optional<uint32_t> servers_wanted_;
  // Whether an answer of the coordinator has shown that the job has begun.
  bool began_ = false;
  // Whether the job is over: server 0 has ended in order, or the job was stopped before it began.
  bool job_over_ = false;
  Time stop_asked_at_{};
  // The time at which processes that still run are asked to end.
  std::optional<Time> end_at_;
  std::optional<Time> kill_at_;
  Time start_deadline_{};
};

}  // namespace leeway
