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

// The state that a worker keeps between clocks, as it was at `clock`.
struct WorkerState {
  uint64_t clock = 0;
  std::string bytes;
};

// Returns true if both replies belong to the same life of a worker in the same generation of the
// job. If the servers have refused something under the first registration, they then refuse it
// under the second one, too.
bool SameLife(const v1::RegisterWorkerReply& a, const v1::RegisterWorkerReply& b);

// Thread-safe after Register(). Each call is repeated until the coordinator itself answers. If that
// takes too long, the call returns UNAVAILABLE, naming the limit and the missing process.
class CoordinatorSession {
 public:
  struct Options {
    // The coordinator's address, for messages and the log.
    std::string address;
    std::string host;
    // The network of this host (NetworkIdentity in common/rpc/host.h).
    std::string network = {};
    uint32_t pid = 0;
    // A random number, drawn when the process starts. It lets the coordinator tell a retry from a
    // new life.
    uint64_t nonce = 0;
    std::function<void(Duration)> sleep = [](Duration d) { std::this_thread::sleep_for(d); };
    // The clock for the limits of calls.
    std::function<Time()> now = [] { return std::chrono::steady_clock::now(); };
    // Lets another thread end FetchJob(), FetchModel() and Register() at once. It outlives the
    // session. May be null.
    CallBreaker* registrations = nullptr;
  };

  using Listener = Heartbeats::Listener;

  CoordinatorSession(std::shared_ptr<grpc::Channel> channel, Options options);

  // Fetches the resolved job without registering. Waits up to `limit` for the coordinator.
  absl::StatusOr<v1::RegisterWorkerReply> FetchJob(std::optional<uint32_t> rank, Duration limit);
  // Fetches what a reader of the weights needs if it takes no part in the job. Waits up to `limit`
  // until there are weights.
  absl::StatusOr<v1::RegisterWorkerReply> FetchModel(Duration limit);
  // Registers the worker. Waits up to `limit` (the job's limits.start_seconds) for all other
  // workers and servers, and logs which of them are missing. Fills in the request's host, pid and
  // build. No other method of the session may run meanwhile.
  absl::StatusOr<v1::RegisterWorkerReply> Register(v1::RegisterWorkerRequest request,
                                                   Duration limit);

  // Starts the heartbeats, which renew the lease and send metrics once in each period `every`. Call
  // it once.
  void StartHeartbeats(Duration every, Listener listener) {
    heartbeats_.Start(every, std::move(listener));
  }
  // Sends the next heartbeat early (Heartbeats::BeatSoon), because its answer contains the servers'
  // current addresses.
  void BeatSoon() { heartbeats_.BeatSoon(); }
  // Ends the heartbeats. When this returns, the listener is not called any more.
  void EndHeartbeats() { heartbeats_.End(); }

  // Sets the number of completed exchanges.
  void SetClock(uint64_t clock) { heartbeats_.SetClock(clock); }
  void Report(const v1::StepMetrics& metrics) { heartbeats_.Report(metrics); }
  void Report(const v1::EvaluationMetrics& metrics) { heartbeats_.Report(metrics); }
  // Reports an evaluation, and waits until the coordinator has it, because the coordinator may
  // answer it with a stop.
  absl::Status ReportNow(const v1::EvaluationMetrics& metrics);
  // True if the coordinator has asked for a stop. Then call StopAt before the next exchange.
  bool stop_requested() const { return heartbeats_.stop_requested(); }
  // For a worker that has waited for long. Returns true if the coordinator has recently reported
  // that it hears every process on which the wait may depend. Then those processes are only busy,
  // and the wait may go on as long as they need.
  bool others_are_heard() const { return heartbeats_.others_are_heard(); }

  // Reports a loss scale. Returns OK when the coordinator has recorded it durably.
  absl::Status ReportLossScale(const v1::LossScale& scale);
  // Reports that this program keeps state between clocks, although its exchange does not. Returns
  // OK when the coordinator has recorded it durably.
  absl::Status KeepState();

  // Asks at which clock to stop. The worker is at `clock`, between two exchanges.
  absl::StatusOr<uint64_t> StopAt(uint64_t clock);

  // Requests batches. Fills the worker's identity into the request. Returns CANCELLED after
  // EndLeases().
  absl::StatusOr<v1::LeaseDataReply> LeaseData(v1::LeaseDataRequest request);
  // Ends the LeaseData request in progress. Every later request ends at once.
  void EndLeases() { leases_.Break(); }

  // Sends the worker's state for the cut at `clock`.
  absl::Status SaveWorkerState(uint64_t clock, const std::string& state);
  // Loads the worker's state from the checkpoint from which the job was resumed. Returns NOT_FOUND
  // if the checkpoint has no state for this worker.
  absl::StatusOr<WorkerState> LoadWorkerState();

  // Ends the heartbeats, sends the last metrics, leaves, and waits until the job is sealed. Before
  // that the job may go back to a checkpoint and need this worker again; then Leave returns
  // FAILED_PRECONDITION. If the coordinator has answered once, Leave waits for a further answer as
  // long as Register() does, and then returns UNAVAILABLE. If a worker has finished and gets no
  // answer at all, Leave returns OK, because the job may be over.
  absl::Status Leave(v1::LeaveReason reason, uint64_t clock, const std::string& message);

 private:
  // Makes a call that the coordinator answers at once. `breaker` ends the call.
  absl::Status Call(const std::string& what,
                    const std::function<grpc::Status(grpc::ClientContext&)>& attempt,
                    CallBreaker* breaker = nullptr);
  // Makes a call whose transfer takes as long as the link needs.
  absl::Status Move(const std::string& what,
                    const std::function<grpc::Status(grpc::ClientContext&)>& attempt);
  // Returns the registration with this process's identity filled in.
  v1::RegisterWorkerRequest Filled(v1::RegisterWorkerRequest request = {}) const;
  absl::StatusOr<v1::RegisterWorkerReply> SendRegister(const v1::RegisterWorkerRequest& request,
                                                       const std::string& what,
                                                       const RetryLimits& limits);
  // Repeats the request until the coordinator reports that the job is sealed or needs this worker
  // again.
  absl::Status SayLeave(const v1::LeaveRequest& request);
  // Returns the result of Leave() if the coordinator does not answer, or stops answering.
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
