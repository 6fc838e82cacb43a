// A worker's heartbeats. They renew its lease, send its metrics, and return what has changed in the
// job.
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
#include "client/session/others_heard.h"
#include "client/session/session_life.h"
#include "client/transport/transport.h"
#include "common/clock.h"
#include "common/mutex.h"
#include "leeway/v1/coordinator.pb.h"
#include "run/core/metrics_queue.h"

namespace leeway {

// Thread-safe after Begin().
class Heartbeats {
 public:
  // The callbacks of the heartbeats. All of them run on the heartbeats' thread.
  struct Listener {
    // Returns what the worker waits for, or an empty string if it computes.
    std::function<std::string()> waiting;
    // Called when the clock at which to stop becomes known, or changes because a failing job stops
    // earlier.
    std::function<void(uint64_t stop_at)> on_stop_at;
    // Called when blocks have moved to other servers. `servers` is by shard.
    std::function<void(const std::vector<ServerEndpoint>& servers)> on_servers = nullptr;
    // Called when the workers' addresses have changed, in jobs whose workers fetch from each other.
    std::function<void(const v1::Peers& peers)> on_peers = nullptr;
    // Called with the newest lives of the workers of this host whose contributions this worker
    // combines.
    std::function<void(const v1::HostGroup& group)> on_group = nullptr;
    // Called when the coordinator does not accept this life of the rank any more, so that the
    // worker must stop. This happens at most once, after the last heartbeat.
    std::function<void(const absl::Status& why)> on_refused;
  };

  static constexpr Duration kBeatsApart = std::chrono::milliseconds(50);

  // Both arguments must outlive the heartbeats. `life` is set before Begin().
  Heartbeats(CoordinatorCalls& calls, const SessionLife& life);
  // Ends the heartbeats without telling the coordinator, which then considers the rank lost.
  ~Heartbeats();

  // Call this when the worker has registered, with the coordinator's answer.
  void Begin(const v1::RegisterWorkerReply& reply);
  // Starts the thread, which sends one heartbeat in each period `every`. Call it once.
  void Start(Duration every, Listener listener);
  // Sends the next heartbeat early, but not before kBeatsApart has passed since the last one. This
  // distance doubles after each early heartbeat whose answer reports no new addresses.
  void BeatSoon();
  // Ends the heartbeats. When this returns, the listener is not called any more.
  void End();
  // Sends one heartbeat, on the caller's thread.
  absl::Status Beat();
  // Sends `request`, which is a Greeting() with additional fields, and repeats it until the
  // coordinator answers. `what` describes the call in messages.
  absl::Status Tell(const std::string& what, const v1::HeartbeatRequest& request);
  // Returns a heartbeat with only the sender's identity and the worker's clock.
  v1::HeartbeatRequest Greeting() const;

  void SetClock(uint64_t clock);
  void Report(const v1::StepMetrics& metrics);
  void Report(const v1::EvaluationMetrics& metrics);
  bool stop_requested() const;
  bool others_are_heard() const { return others_heard_.Lately(); }

 private:
  // What the coordinator's answers have said so far.
  struct Heard {
    bool stop_requested = false;
    std::optional<uint64_t> stop_at;
    // The epoch of the latest placement of the shards.
    uint64_t epoch = 0;
    // The epoch of the latest addresses of the workers. A restarted coordinator may begin with a
    // lower one.
    uint64_t peers_epoch = 0;
  };

  void Loop();
  v1::HeartbeatRequest GreetingNow() const REQUIRES(mutex_);
  v1::HeartbeatRequest MakeHeartbeat(std::vector<v1::EvaluationMetrics>& evaluations)
      EXCLUDES(mutex_);
  void TakeReply(const v1::HeartbeatReply& reply);

  CoordinatorCalls& calls_;
  const SessionLife& life_;
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
