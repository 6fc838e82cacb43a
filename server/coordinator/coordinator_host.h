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
// by a thread that keeps time and order, one for files, and one for each server that is called.
// Records are written on the first: what comes after one waits until it is durable, but for lines
// of the log; and those that nothing follows from are written when all else is done.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <grpcpp/server_builder.h>

#include "absl/status/statusor.h"
#include "common/clock.h"
#include "common/mutex.h"
#include "server/coordinator/checkpoint_sink.h"
#include "server/coordinator/control_link.h"
#include "server/coordinator/coordinator_core.h"
#include "server/coordinator/metrics_log.h"
#include "server/coordinator/serial_thread.h"

namespace leeway {

class CoordinatorService;
class ServerQueue;

struct CoordinatorHostOptions {
  CoordinatorOptions core;
  // Where time comes from: durations, and seconds since 1970 for metrics.jsonl.
  std::function<Time()> now = [] { return std::chrono::steady_clock::now(); };
  std::function<double()> wall_seconds = [] {
    return Seconds(std::chrono::system_clock::now().time_since_epoch());
  };
};

// Thread-safe.
class CoordinatorHost {
 public:
  // Opens RUN_DIR/metrics.jsonl, whose folder must exist. `sink` must outlive the host.
  static absl::StatusOr<std::unique_ptr<CoordinatorHost>> Start(CoordinatorHostOptions options,
                                                                CheckpointSink* sink);
  // After the gRPC server has shut down. Cancels what is under way; files are finished.
  ~CoordinatorHost();
  CoordinatorHost(const CoordinatorHost&) = delete;

  // Adds the Coordinator service. The builder's server must go before the host.
  void Register(grpc::ServerBuilder& builder);
  // Awaits calls on `queue`, which outlives the host, from now on: once the gRPC server runs.
  void Await(ServerQueue* queue);

  // As if somebody had called StopJob.
  void StopJob(const std::string& reason);
  v1::JobStatus Status();

  // Blocks until the job's last state is fixed, every server has been told (or did not answer
  // within seconds), and metrics.jsonl is complete.
  v1::JobState WaitUntilOver();
  // The same until `deadline` at most.
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
  CheckpointSink& sink() { return *sink_; }

 private:
  struct Due {
    Command command;
    double wall = 0;
  };

  CoordinatorHost(CoordinatorHostOptions options, CheckpointSink* sink,
                  std::unique_ptr<MetricsLog> metrics);

  void Collect() REQUIRES(mutex_);
  void Run() EXCLUDES(mutex_);
  Time NextWake() const REQUIRES(mutex_);
  // What is due, at the latest at the next tick; nothing at the end. Sets `over`.
  std::vector<Due> Next(bool& over) EXCLUDES(mutex_);

  void Do(std::vector<Due> due) EXCLUDES(mutex_);
  // False: it is no line for the log.
  static bool AddLine(const Due& due, std::string& lines);
  void Append(std::string lines);
  void Do(const ConnectServer& command);
  void Do(const DisconnectServer& command);
  void Do(const ConfigureServer& command);
  void Do(const SetLive& command);
  void Do(const CommitSet& command);
  void Do(const SaveAll& command);
  void Do(WriteManifest command);
  void Do(const ShutdownServers& command);
  void Announce();
  // False: it could not be written, and is to be tried again.
  bool Write(const WriteRecord& command, std::string& lines) EXCLUDES(mutex_);
  Due Unwritten(const absl::Status& status) const;
  // A record, and what came after it, until the next tick.
  void KeepBack(std::vector<Due> due) EXCLUDES(mutex_);

  // On the thread for files.
  void WriteCheckpoint(const WriteManifest& command);

  const CoordinatorHostOptions options_;
  CheckpointSink* const sink_;
  const Duration tick_;
  // With a record that cannot be written.
  const Duration patience_;
  // Used on the thread for files alone.
  const std::unique_ptr<MetricsLog> metrics_;
  const std::unique_ptr<CoordinatorService> service_;

  Mutex mutex_;
  CondVar changed_;
  CoordinatorCore core_ GUARDED_BY(mutex_);
  std::vector<Due> due_ GUARDED_BY(mutex_);
  // What is due begins with a record that could not be written.
  bool kept_back_ GUARDED_BY(mutex_) = false;
  Time next_tick_ GUARDED_BY(mutex_);
  bool ending_ GUARDED_BY(mutex_) = false;
  // Set when WaitUntilOver may return.
  std::optional<v1::JobState> over_ GUARDED_BY(mutex_);

  // Of that thread alone; by server, null before it has registered and while it is lost.
  std::vector<std::unique_ptr<ControlLink>> links_;
  bool announced_ = false;
  // Nothing waits for it, and no newer one has been written.
  std::optional<WriteRecord> owed_;
  // Since when a record that is awaited could not be written; that it was given up; that it was
  // said. Until one is written.
  std::optional<Time> awaited_since_;
  bool given_up_ = false;
  bool complained_ = false;

  SerialThread files_;
  std::thread thread_;
};

}  // namespace leeway
