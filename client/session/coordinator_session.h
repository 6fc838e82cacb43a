// A worker's membership in its job: registration, heartbeats, the orderly end.
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

// What a worker kept between clocks, as it was at one.
struct WorkerState {
  uint64_t clock = 0;
  std::string bytes;
};

// Both are of the same life of a worker in the same generation of the job, so that what the servers
// refuse of the second one will be refused again.
bool SameLife(const v1::RegisterWorkerReply& a, const v1::RegisterWorkerReply& b);

// Thread-safe after Register(). Calls are sent again until the coordinator itself answers;
// UNAVAILABLE, naming the limit and who was missing, once that has taken too long.
class CoordinatorSession {
 public:
  struct Options {
    // For messages and the log.
    std::string address;
    std::string host;
    // common/rpc/host.h, NetworkIdentity.
    std::string network = {};
    uint32_t pid = 0;
    // Drawn when the process starts; tells a retry from a new life.
    uint64_t nonce = 0;
    std::function<void(Duration)> sleep = [](Duration d) { std::this_thread::sleep_for(d); };
    // What limits of calls are measured by.
    std::function<Time()> now = [] { return std::chrono::steady_clock::now(); };
    // Ends FetchJob(), FetchModel() and Register() at once, from another thread; outlives the
    // session. Null: nobody does.
    CallBreaker* registrations = nullptr;
  };

  // What heartbeats bring, on the heartbeats' thread.
  struct Listener {
    // What the worker waits for, in words; empty: it computes.
    std::function<std::string()> waiting;
    // The clock at which to stop is known, or has changed (a failing job stops earlier).
    std::function<void(uint64_t stop_at)> on_stop_at;
    // Blocks are on other servers than before; by shard.
    std::function<void(const std::vector<ServerEndpoint>& servers)> on_servers = nullptr;
    // The newest lives of the workers of this host, whose contributions this one sends.
    std::function<void(const v1::HostGroup& group)> on_group = nullptr;
    // The coordinator has given up this life of the rank: stop. The last heartbeat; once.
    std::function<void(const absl::Status& why)> on_refused;
  };

  static constexpr Duration kBeatsApart = std::chrono::milliseconds(50);

  CoordinatorSession(std::shared_ptr<grpc::Channel> channel, Options options);
  // Ends the heartbeats; says nothing to the coordinator, which takes the rank for lost.
  ~CoordinatorSession();

  // The resolved job, before anything else is known. Waits for the coordinator for `limit`.
  absl::StatusOr<v1::RegisterWorkerReply> FetchJob(std::optional<uint32_t> rank, Duration limit);
  // What it takes to read the weights, for who takes no part. Waits for them for `limit`.
  absl::StatusOr<v1::RegisterWorkerReply> FetchModel(Duration limit);
  // Waits for all other workers and servers for `limit` (the job's limits.start_seconds), logging
  // whom it waits for. Fills in host, pid and build. Nothing else may run meanwhile.
  absl::StatusOr<v1::RegisterWorkerReply> Register(v1::RegisterWorkerRequest request,
                                                   Duration limit);

  // From now on the lease is kept and metrics go out, every `every`. Once.
  void StartHeartbeats(Duration every, Listener listener);
  // The next heartbeat now, for its answer says where the servers are; no sooner than kBeatsApart
  // after the last one, and twice as late each time that there is no news.
  void BeatSoon();
  // The listener is not called any more when it returns.
  void EndHeartbeats();

  // Exchanges completed.
  void SetClock(uint64_t clock);
  void Report(const v1::StepMetrics& metrics);
  void Report(const v1::EvaluationMetrics& metrics);
  // The same, and waits until the coordinator has it: it may ask for a stop because of it.
  absl::Status ReportNow(const v1::EvaluationMetrics& metrics);
  // A stop was asked for: ask StopAt before the next exchange.
  bool stop_requested() const;
  // Of one who has waited for long: the coordinator has said lately that it hears every process
  // that the wait may be for. So it is busy, and the wait may last as long as that takes.
  bool others_are_heard() const;

  // OK when it is on record.
  absl::Status ReportLossScale(const v1::LossScale& scale);
  // The same: this program keeps state between clocks, although its exchange does not.
  absl::Status KeepState();

  // At which clock to stop, standing at `clock` between two exchanges.
  absl::StatusOr<uint64_t> StopAt(uint64_t clock);

  // Fills in who asks. CANCELLED after EndLeases().
  absl::StatusOr<v1::LeaseDataReply> LeaseData(v1::LeaseDataRequest request);
  // No more batches are asked for: the question under way ends.
  void EndLeases() { leases_.Break(); }

  // Hands in what the worker keeps, for the cut at `clock`.
  absl::Status SaveWorkerState(uint64_t clock, const std::string& state);
  // The worker's part of the checkpoint that the job was resumed from; NOT_FOUND if there is none.
  absl::StatusOr<WorkerState> LoadWorkerState();

  // Ends the heartbeats, hands in the last metrics, leaves, and waits until the job is sealed:
  // until then it may go back to a checkpoint and need this worker again (FAILED_PRECONDITION). A
  // coordinator that has answered once is waited for as long as Register() waits. UNAVAILABLE if
  // there is no answer; but none at all is no error to one who has finished: the job may be over.
  absl::Status Leave(v1::LeaveReason reason, uint64_t clock, const std::string& message);

 private:
  // The coordinator answers at once; what takes longer is lost.
  static constexpr Duration kAttempt = std::chrono::seconds(20);

  // Sends until answered, `limits.total` is over, or it is broken off; one attempt takes no longer
  // than `attempt_max`. `what` is for messages.
  absl::Status Call(const std::string& what, const RetryLimits& limits,
                    const std::function<grpc::Status(grpc::ClientContext&)>& attempt,
                    CallBreaker* breaker = nullptr, Duration attempt_max = kAttempt);
  // The same for what takes as long as the link needs.
  absl::Status Move(const std::string& what,
                    const std::function<grpc::Status(grpc::ClientContext&)>& attempt);
  // Of what a worker says or asks while it trains.
  RetryLimits Patient() const;
  // A registration by this process.
  v1::RegisterWorkerRequest Filled(v1::RegisterWorkerRequest request = {}) const;
  absl::StatusOr<v1::RegisterWorkerReply> SendRegister(const v1::RegisterWorkerRequest& request,
                                                       const std::string& what,
                                                       const RetryLimits& limits);
  // Until the answer is final.
  absl::Status SayLeave(const v1::LeaveRequest& request);
  // What it means to `reason` that there was no answer, or no further one.
  static absl::Status Unanswered(const absl::Status& status, v1::LeaveReason reason,
                                 bool answered_before);
  void HeartbeatLoop();
  // One heartbeat.
  absl::Status Beat();
  // Who it is, and how far.
  v1::HeartbeatRequest Greeting() const REQUIRES(mutex_);
  v1::HeartbeatRequest MakeHeartbeat(std::vector<v1::EvaluationMetrics>& evaluations)
      REQUIRES(mutex_);
  // A heartbeat besides those at their times, for what must not wait or be lost.
  absl::StatusOr<v1::HeartbeatReply> Tell(const std::string& what,
                                          const v1::HeartbeatRequest& request);
  void TakeHeartbeatReply(const v1::HeartbeatReply& reply);
  // Waiting for `what`; empty: for nothing. Asks the coordinator from time to time whom it hears.
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
  // A clock may be complete without a worker that is lost.
  bool goes_on_without_lost_ = false;
  // Constant after StartHeartbeats().
  Duration every_{};
  Listener listener_;
  // Of the heartbeats' thread: since when it waits, and when it last asked whom the coordinator
  // hears.
  std::optional<Time> waits_since_;
  Time asked_{};

  mutable Mutex mutex_;
  CondVar changed_;
  MetricsQueue steps_ GUARDED_BY(mutex_);
  std::vector<v1::EvaluationMetrics> evaluations_ GUARDED_BY(mutex_);
  uint64_t clock_ GUARDED_BY(mutex_) = 0;
  bool stop_requested_ GUARDED_BY(mutex_) = false;
  std::optional<uint64_t> stop_at_ GUARDED_BY(mutex_);
  // Of the servers as they are known here.
  uint64_t epoch_ GUARDED_BY(mutex_) = 0;
  bool ending_ GUARDED_BY(mutex_) = false;
  bool beat_soon_ GUARDED_BY(mutex_) = false;
  uint64_t calls_ GUARDED_BY(mutex_) = 0;
  std::optional<Time> others_heard_ GUARDED_BY(mutex_);

  CallBreaker leases_;
  std::thread heartbeats_;
};

}  // namespace leeway
