// A worker's membership in its job: registration, heartbeats and the orderly end.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>

#include "absl/status/statusor.h"
#include "client/core/retry_core.h"
#include "client/session/call_breaker.h"
#include "client/session/coordinator_calls.h"
#include "client/session/heartbeats.h"
#include "client/session/session_life.h"
#include "common/clock.h"
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

  using Listener = Heartbeats::Listener;

  CoordinatorSession(std::shared_ptr<grpc::Channel> channel, Options options);

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
  void StartHeartbeats(Duration every, Listener listener) {
    heartbeats_.Start(every, std::move(listener));
  }
  // Sends the next heartbeat early, because its answer says where the servers are
  // (Heartbeats::BeatSoon).
  void BeatSoon() { heartbeats_.BeatSoon(); }
  // When this returns, the listener is not called any more.
  void EndHeartbeats() { heartbeats_.End(); }

  // Sets the number of completed exchanges.
  void SetClock(uint64_t clock) { heartbeats_.SetClock(clock); }
  void Report(const v1::StepMetrics& metrics) { heartbeats_.Report(metrics); }
  void Report(const v1::EvaluationMetrics& metrics) { heartbeats_.Report(metrics); }
  // Reports, and waits until the coordinator has the report: it may ask for a stop because of it.
  absl::Status ReportNow(const v1::EvaluationMetrics& metrics);
  // A stop was asked for: call StopAt before the next exchange.
  bool stop_requested() const { return heartbeats_.stop_requested(); }
  // For a worker that has waited for long. True if the coordinator has said recently that it hears
  // every process that the wait may depend on. Those processes are busy then, and the wait may go
  // on as long as they need.
  bool others_are_heard() const { return heartbeats_.others_are_heard(); }

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
  // Calls as the coordinator answers at once. `breaker` ends the call.
  absl::Status Call(const std::string& what,
                    const std::function<grpc::Status(grpc::ClientContext&)>& attempt,
                    CallBreaker* breaker = nullptr);
  // The same for a call that takes as long as the link needs.
  absl::Status Move(const std::string& what,
                    const std::function<grpc::Status(grpc::ClientContext&)>& attempt);
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

  const Options options_;
  CoordinatorCalls calls_;
  // Constant after Register().
  SessionLife life_;
  CallBreaker leases_;
  Heartbeats heartbeats_;
};

}  // namespace leeway
