// The heartbeats of a worker: they renew its lease, carry its metrics, and bring what has changed.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "client/session/coordinator_calls.h"
#include "client/session/metrics_queue.h"
#include "client/session/others_heard.h"
#include "client/session/session_life.h"
#include "client/transport/transport.h"
#include "common/clock.h"
#include "common/mutex.h"
#include "leeway/v1/coordinator.pb.h"

namespace leeway {

// Thread-safe after Begin().
class Heartbeats {
 public:
  // What heartbeats bring. All callbacks run on the heartbeats' thread.
  struct Listener {
    // Says what the worker waits for. Empty: it computes.
    std::function<std::string()> waiting;
    // The clock at which to stop is known, or has changed (a failing job stops earlier).
    std::function<void(uint64_t stop_at)> on_stop_at;
    // Blocks have moved to other servers. The list is by shard.
    std::function<void(const std::vector<ServerEndpoint>& servers)> on_servers = nullptr;
    // The newest lives of the workers of this host, whose contributions this worker sends.
    std::function<void(const v1::HostGroup& group)> on_group = nullptr;
    // The coordinator has given up this life of the rank, so the worker must stop. Called once,
    // after the last heartbeat.
    std::function<void(const absl::Status& why)> on_refused;
  };

  static constexpr Duration kBeatsApart = std::chrono::milliseconds(50);

  // `calls` outlives it.
  explicit Heartbeats(CoordinatorCalls& calls);
  // Ends them. The coordinator is not told, and takes the rank for lost.
  ~Heartbeats();

  // The worker has registered. `epoch`: of the servers, as the answer gave them.
  void Begin(const SessionLife& life, uint64_t epoch);
  // Starts the thread, which sends one heartbeat in each period `every`. Call it once.
  void Start(Duration every, Listener listener);
  // Sends the next heartbeat early, no sooner than kBeatsApart after the last one. The distance
  // doubles each time that there is no news.
  void BeatSoon();
  // When this returns, the listener is not called any more.
  void End();
  // Sends one heartbeat, on the caller's thread.
  absl::Status Beat();
  // Sends `request`, a Greeting() with more in it, until the coordinator has answered.
  absl::Status Tell(const std::string& what, const v1::HeartbeatRequest& request);
  // A heartbeat that says only who sends it, and how far the worker is.
  v1::HeartbeatRequest Greeting() const;

  void SetClock(uint64_t clock);
  void Report(const v1::StepMetrics& metrics);
  void Report(const v1::EvaluationMetrics& metrics);
  bool stop_requested() const;
  bool others_are_heard() const { return others_heard_.Lately(); }

 private:
  // What the coordinator has said so far.
  struct Heard {
    bool stop_requested = false;
    std::optional<uint64_t> stop_at;
    // Of the servers.
    uint64_t epoch = 0;
  };

  void Loop();
  v1::HeartbeatRequest GreetingNow() const REQUIRES(mutex_);
  v1::HeartbeatRequest MakeHeartbeat(std::vector<v1::EvaluationMetrics>& evaluations)
      EXCLUDES(mutex_);
  void TakeReply(const v1::HeartbeatReply& reply);

  CoordinatorCalls& calls_;
  // Constant after Begin().
  SessionLife life_;
  // Constant after Start().
  Duration every_{};
  Listener listener_;
  OthersHeard others_heard_;

  mutable Mutex mutex_;
  CondVar changed_;
  MetricsQueue steps_ GUARDED_BY(mutex_);
  std::vector<v1::EvaluationMetrics> evaluations_ GUARDED_BY(mutex_);
  uint64_t clock_ GUARDED_BY(mutex_) = 0;
  Heard heard_ GUARDED_BY(mutex_);
  bool ending_ GUARDED_BY(mutex_) = false;
  bool beat_soon_ GUARDED_BY(mutex_) = false;

  std::thread thread_;
};

}  // namespace leeway
