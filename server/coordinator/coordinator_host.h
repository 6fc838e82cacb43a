// The coordinator as a part of a server process: open this header first.
//
//   CoordinatorHost host(options, &sink);          // at the start, in server 0
//   host.Register(builder);                        // beside the other services
//   host.Await(queue);                             // once the gRPC server runs
//   const v1::JobState state = host.WaitUntilOver();
//   server->Shutdown(deadline);                    // before the host is destroyed
//
// Threads:
// - The threads of the server's queue bring messages in. For each message such a thread takes the
//   lock while the core makes one decision. The resulting commands are queued under the same lock,
//   so they stay in order.
// - The host's own thread ticks the core and carries out the commands in order. It also writes the
//   records. Commands after an awaited record wait until the record is durable; lines for the log
//   do not wait. A record on which no command depends is written when everything else is done.
// - One thread writes files.
// - Each server has two threads here. One calls the server, and the other notices when the server's
//   process ends.
// The classes behind these threads are in due_commands.h, server_links.h, record_writer.h and
// run_writer.h.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <grpcpp/server_builder.h>

#include "absl/status/statusor.h"
#include "common/clock.h"
#include "common/mutex.h"
#include "server/coordinator/checkpoint_sink.h"
#include "server/coordinator/core/coordinator_core.h"
#include "server/coordinator/due_commands.h"
#include "server/coordinator/record_writer.h"
#include "server/coordinator/run_writer.h"
#include "server/coordinator/server_links.h"

namespace leeway {

class CoordinatorService;
class ServerQueue;

struct CoordinatorHostOptions {
  CoordinatorOptions core;
  // A steady clock, for durations.
  std::function<Time()> now = [] { return std::chrono::steady_clock::now(); };
  // The time in seconds since 1970, for metrics.jsonl.
  std::function<double()> wall_seconds = WallClock();
  // The credentials of the calls to servers.
  const TransportSecurity* security = &ProcessSecurity();
};

// Thread-safe.
class CoordinatorHost {
 public:
  // Opens RUN_DIR/metrics.jsonl; the folder must exist. `sink` must outlive the host.
  static absl::StatusOr<std::unique_ptr<CoordinatorHost>> Start(CoordinatorHostOptions options,
                                                                CheckpointSink* sink);
  // Cancels calls in flight, and finishes files. Shut the gRPC server down first.
  ~CoordinatorHost();
  CoordinatorHost(const CoordinatorHost&) = delete;

  // Adds the Coordinator service. The server built by `builder` must be destroyed before the host.
  void Register(grpc::ServerBuilder& builder);
  // Accepts calls on `queue` from now on. Call this function once the gRPC server runs. `queue`
  // must outlive the host.
  void Await(ServerQueue* queue);

  // Has the effect of a StopJob call.
  void StopJob(const std::string& reason);
  v1::JobStatus Status();

  const v1::TrainingJob& job() const { return options_.core.job; }
  // Blocks until three things are done: the job's last state is fixed, every server was told the
  // state (or has not answered within seconds), and metrics.jsonl is complete. Returns the job's
  // last state.
  v1::JobState WaitUntilOver();
  // Waits in the same way, but returns nullopt if the job is not over at `deadline`.
  std::optional<v1::JobState> WaitUntilOver(Time deadline);

  // ---- for the service
  // Makes one decision: calls `decide(core, now)` under the lock, and returns its result.
  template <typename Decide>
  auto Ask(Decide decide) EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    auto answer = decide(core_, options_.now());
    Collect();
    return answer;
  }
  CheckpointSink& sink() { return *files_.sink(); }

 private:
  CoordinatorHost(CoordinatorHostOptions options, CheckpointSink* sink,
                  std::unique_ptr<MetricsLog> metrics);

  // Reports the result of a command to the core.
  void Tell(const CommandAnswer& answer) EXCLUDES(mutex_);
  void Collect() REQUIRES(mutex_);
  void Run() EXCLUDES(mutex_);
  Time NextWake() const REQUIRES(mutex_);
  // Waits for commands that are due, at most until the next tick, and returns them. Returns no
  // commands when the host ends. Sets `over` to whether the job is over.
  std::vector<Due> Next(bool& over) EXCLUDES(mutex_);
  void Do(std::vector<Due> due) EXCLUDES(mutex_);
  // Carries out a command that is neither a record nor a line for the log.
  void Do(Command command);
  // Writes a record. Returns false if the write failed and must be tried again.
  bool Write(const WriteRecord& command, std::string& lines) EXCLUDES(mutex_);
  void Announce();

  const CoordinatorHostOptions options_;
  const std::unique_ptr<CoordinatorService> service_;

  Mutex mutex_;
  CondVar changed_;
  CoordinatorCore core_ GUARDED_BY(mutex_);
  DueCommands due_ GUARDED_BY(mutex_);
  bool ending_ GUARDED_BY(mutex_) = false;
  // The result of WaitUntilOver, once that function may return.
  std::optional<v1::JobState> over_ GUARDED_BY(mutex_);

  // The host's own thread alone uses these.
  ServerLinks links_;
  RecordWriter records_;
  RunWriter files_;
  std::thread thread_;
};

}  // namespace leeway
