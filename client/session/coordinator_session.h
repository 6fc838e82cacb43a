// A worker's membership in its job: registration, heartbeats and the orderly end.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>

#include "absl/status/statusor.h"
#include "client/core/retry_core.h"
#include "client/session/call_breaker.h"
#include "client/session/metrics_queue.h"
#include "client/transport/transport.h"
#include "common/clock.h"
#include "common/mutex.h"
#include "leeway/v1/coordinator.grpc.pb.h"

namespace leeway {

// What a worker keeps between clocks, as it was at one clock.
struct WorkerState {
  uint64_t clock = 0;
  std::string bytes;
};

// True if both are of the same life of a worker in the same generation of the job. Then the servers
// refuse from the second what they refused from the first.
bool SameLife(const v1::RegisterWorkerReply& a, const v1::RegisterWorkerReply& b);

// Thread-safe after Register(). A call is sent again until the coordinator itself answers. If that
// takes too long, the call returns UNAVAILABLE and names the limit and the missing process.
class CoordinatorSession {
 public:
  struct Options {
    // For messages and the log.
    std::string address;
    std::string host;
    // The host's network (NetworkIdentity in common/rpc/host.h).
    std::string network = {};
    uint32_t pid = 0;
    // Drawn when the process starts. It tells a retry from a new life.
    uint64_t nonce = 0;
    std::function<void(Duration)> sleep = [](Duration d) { std::this_thread::sleep_for(d); };
    // The clock for the limits of calls.
    std::function<Time()> now = [] { return std::chrono::steady_clock::now(); };
    // Ends FetchJob(), FetchModel() and Register() at once, from another thread. It outlives the
    // session. May be null.
    CallBreaker* registrations = nullptr;
  };

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

  CoordinatorSession(std::shared_ptr<grpc::Channel> channel, Options options);
  // Ends the heartbeats. The coordinator is not told, and takes the rank for lost.
  ~CoordinatorSession();

  // Fetches the resolved job, before anything else is known. Waits up to `limit` for the
  // coordinator.
  absl::StatusOr<v1::RegisterWorkerReply> FetchJob(std::optional<uint32_t> rank, Duration limit);
  // Fetches what a reader of the weights needs that takes no part in the job. Waits up to `limit`
  // until there are weights.
  absl::StatusOr<v1::RegisterWorkerReply> FetchModel(Duration limit);
  // Waits up to `limit` (the job's limits.start_seconds) for all other workers and servers, and
  // logs which of them are missing. Fills in host, pid and build. Nothing else of the session may
  // run meanwhile.
  absl::StatusOr<v1::RegisterWorkerReply> Register(v1::RegisterWorkerRequest request,
                                                   Duration limit);

  // Starts to renew the lease and to send metrics, once in each period `every`. Call it once.
  void StartHeartbeats(Duration every, Listener listener);
  // Sends the next heartbeat early, because its answer says where the servers are. It goes no
  // sooner than kBeatsApart after the last one. The distance doubles each time that there is no
  // news.
  void BeatSoon();
  // When this returns, the listener is not called any more.
  void EndHeartbeats();

  // Sets the number of completed exchanges.
  void SetClock(uint64_t clock);
  void Report(const v1::StepMetrics& metrics);
  void Report(const v1::EvaluationMetrics& metrics);
  // Reports, and waits until the coordinator has the report: it may ask for a stop because of it.
  absl::Status ReportNow(const v1::EvaluationMetrics& metrics);
  // A stop was asked for: call StopAt before the next exchange.
  bool stop_requested() const;
  // For a worker that has waited for long. True if the coordinator has said recently that it hears
  // every process that the wait may depend on. Those processes are busy then, and the wait may go
  // on as long as they need.
  bool others_are_heard() const;

  // Returns OK when the loss scale is on record.
  absl::Status ReportLossScale(const v1::LossScale& scale);
  // Returns OK when it is on record that this program keeps state between clocks, although its
  // exchange does not.
  absl::Status KeepState();

  // Asks at which clock to stop. The worker is at `clock`, between two exchanges.
  absl::StatusOr<uint64_t> StopAt(uint64_t clock);

  // Fills in the worker's identity, and asks. CANCELLED after EndLeases().
  absl::StatusOr<v1::LeaseDataReply> LeaseData(v1::LeaseDataRequest request);
  // Asks for no more batches, and ends the request in progress.
  void EndLeases() { leases_.Break(); }

  // Hands in what the worker keeps, for the cut at `clock`.
  absl::Status SaveWorkerState(uint64_t clock, const std::string& state);
  // The worker's part of the checkpoint from which the job was resumed. NOT_FOUND if it has none.
  absl::StatusOr<WorkerState> LoadWorkerState();

  // Ends the heartbeats, hands in the last metrics, leaves, and waits until the job is sealed.
  // Until then the job may go back to a checkpoint and need this worker again
  // (FAILED_PRECONDITION). If the coordinator has answered once, this waits as long as Register()
  // does. UNAVAILABLE if no further answer comes. A worker that has finished and gets no answer
  // at all sees no error: the job may be over.
  absl::Status Leave(v1::LeaveReason reason, uint64_t clock, const std::string& message);

 private:
  // The coordinator answers at once. A call that takes longer is lost.
  static constexpr Duration kAttempt = std::chrono::seconds(20);

  // Sends until the coordinator answers, `limits.total` is over, or `breaker` ends the call. One
  // attempt takes at most `attempt_max`. `what` is for messages.
  absl::Status Call(const std::string& what, const RetryLimits& limits,
                    const std::function<grpc::Status(grpc::ClientContext&)>& attempt,
                    CallBreaker* breaker = nullptr, Duration attempt_max = kAttempt);
  // The same for a call that takes as long as the link needs.
  absl::Status Move(const std::string& what,
                    const std::function<grpc::Status(grpc::ClientContext&)>& attempt);
  // The limits of what a worker says or asks while it trains.
  RetryLimits Patient() const;
  // Adds this process's identity to a registration.
  v1::RegisterWorkerRequest Filled(v1::RegisterWorkerRequest request = {}) const;
  absl::StatusOr<v1::RegisterWorkerReply> SendRegister(const v1::RegisterWorkerRequest& request,
                                                       const std::string& what,
                                                       const RetryLimits& limits);
  // Repeats until the answer is final.
  absl::Status SayLeave(const v1::LeaveRequest& request);
  // Says what a missing answer, or a missing further answer, means for `reason`.
  static absl::Status Unanswered(const absl::Status& status, v1::LeaveReason reason,
                                 bool answered_before);
  void HeartbeatLoop();
  // Sends one heartbeat.
  absl::Status Beat();
  // The worker's identity and its clock.
  v1::HeartbeatRequest Greeting() const REQUIRES(mutex_);
  v1::HeartbeatRequest MakeHeartbeat(std::vector<v1::EvaluationMetrics>& evaluations)
      REQUIRES(mutex_);
  // Sends a heartbeat outside the schedule, for what must neither wait nor be lost.
  absl::StatusOr<v1::HeartbeatReply> Tell(const std::string& what,
                                          const v1::HeartbeatRequest& request);
  void TakeHeartbeatReply(const v1::HeartbeatReply& reply);
  // Notes that the worker waits for `what` (empty: for nothing). From time to time this asks the
  // coordinator which processes it hears.
  void LookAtWait(const std::string& what);
  bool HearsOthers();

  // Constant after construction.
  const Options options_;
  const std::unique_ptr<v1::Coordinator::Stub> stub_;
  // Constant after Register().
  uint64_t job_ = 0;
  uint32_t rank_ = 0;
  uint64_t incarnation_ = 0;
  uint64_t generation_ = 0;
  Duration start_limit_{};
  Duration patience_{};
  Duration exchange_limit_{};
  // A clock may be complete without a lost worker.
  bool goes_on_without_lost_ = false;
  // Constant after StartHeartbeats().
  Duration every_{};
  Listener listener_;
  // Used by the heartbeats' thread only: when the wait began, and when it last asked which
  // processes the coordinator hears.
  std::optional<Time> waits_since_;
  Time asked_{};

  mutable Mutex mutex_;
  CondVar changed_;
  MetricsQueue steps_ GUARDED_BY(mutex_);
  std::vector<v1::EvaluationMetrics> evaluations_ GUARDED_BY(mutex_);
  uint64_t clock_ GUARDED_BY(mutex_) = 0;
  bool stop_requested_ GUARDED_BY(mutex_) = false;
  std::optional<uint64_t> stop_at_ GUARDED_BY(mutex_);
  // The epoch of the servers as they are known here.
  uint64_t epoch_ GUARDED_BY(mutex_) = 0;
  bool ending_ GUARDED_BY(mutex_) = false;
  bool beat_soon_ GUARDED_BY(mutex_) = false;
  uint64_t calls_ GUARDED_BY(mutex_) = 0;
  std::optional<Time> others_heard_ GUARDED_BY(mutex_);

  CallBreaker leases_;
  std::thread heartbeats_;
};

}  // namespace leeway
