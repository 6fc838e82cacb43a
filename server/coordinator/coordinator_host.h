// The coordinator as a part of a server process: open this header first.
//
//   CoordinatorHost host(options, &sink);          // at the start, in server 0
//   host.Register(builder);                        // beside the other services
//   host.Await(queue);                             // once the gRPC server runs
//   ... on SIGTERM: host.StopJob("SIGTERM") ...
//   const v1::JobState state = host.WaitUntilOver();
//   server->Shutdown(deadline);                    // before the host goes
//
// Threads: those of the server's queue bring messages in; each takes the lock for one decision of
// the core. What the core wants done is queued under the same lock, so its order is kept, and done
// by a thread that keeps time and order, one for files, and two for each server: one that calls it
// and one that sees its process end.
// Records are written on the first: what comes after one waits until it is durable, but for lines
// of the log; and those that nothing follows from are written when all else is done. The parts
// below have the ways: due_commands.h, server_links.h, record_writer.h, run_files.h.
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
#include "server/coordinator/run_files.h"
#include "server/coordinator/server_links.h"

namespace leeway {

class CoordinatorService;
class ServerQueue;

struct CoordinatorHostOptions {
  CoordinatorOptions core;
  // The sources of time: for durations, and in seconds since 1970 for metrics.jsonl.
  std::function<Time()> now = [] { return std::chrono::steady_clock::now(); };
  std::function<double()> wall_seconds = WallClock();
};

// Thread-safe.
class CoordinatorHost {
 public:
  // Opens RUN_DIR/metrics.jsonl, whose folder must exist. `sink` must outlive the host.
  static absl::StatusOr<std::unique_ptr<CoordinatorHost>> Start(CoordinatorHostOptions options,
                                                                CheckpointSink* sink);
  // Call it after the gRPC server has shut down. Cancels calls in progress, and finishes files.
  ~CoordinatorHost();
  CoordinatorHost(const CoordinatorHost&) = delete;

  // Adds the Coordinator service. The builder's server must go before the host.
  void Register(grpc::ServerBuilder& builder);
  // Accepts calls on `queue` from now on. Call it once the gRPC server runs. `queue` must outlive
  // the host.
  void Await(ServerQueue* queue);

  // As if somebody had called StopJob.
  void StopJob(const std::string& reason);
  v1::JobStatus Status();

  // Blocks until the job's last state is fixed, every server has been told (or did not answer
  // within seconds), and metrics.jsonl is complete.
  v1::JobState WaitUntilOver();
  // The same, but waits until `deadline` at most.
  std::optional<v1::JobState> WaitUntilOver(Time deadline);

  // ---- for the service
  // One decision: `decide(core, now)` under the lock.
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

  // How a command went.
  void Tell(const CommandAnswer& answer) EXCLUDES(mutex_);
  void Collect() REQUIRES(mutex_);
  void Run() EXCLUDES(mutex_);
  Time NextWake() const REQUIRES(mutex_);
  // The commands that are due, at the latest at the next tick. Nothing at the end. Sets `over`.
  std::vector<Due> Next(bool& over) EXCLUDES(mutex_);
  void Do(std::vector<Due> due) EXCLUDES(mutex_);
  // Neither a record nor a line for the log.
  void Do(Command command);
  // False: it could not be written, and is to be tried again.
  bool Write(const WriteRecord& command, std::string& lines) EXCLUDES(mutex_);
  void Announce();

  const CoordinatorHostOptions options_;
  const std::unique_ptr<CoordinatorService> service_;

  Mutex mutex_;
  CondVar changed_;
  CoordinatorCore core_ GUARDED_BY(mutex_);
  DueCommands due_ GUARDED_BY(mutex_);
  bool ending_ GUARDED_BY(mutex_) = false;
  // Set when WaitUntilOver may return.
  std::optional<v1::JobState> over_ GUARDED_BY(mutex_);

  // Of the thread that keeps time and order alone.
  ServerLinks links_;
  RecordWriter records_;
  RunFiles files_;
  std::thread thread_;
};

}  // namespace leeway
