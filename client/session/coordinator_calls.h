// Calls the coordinator, and repeats each call until the coordinator answers.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>

#include "absl/status/status.h"
#include "client/core/retry_core.h"
#include "client/session/call_breaker.h"
#include "common/clock.h"
#include "leeway/v1/coordinator.grpc.pb.h"

namespace leeway {

// Returns the time `delay` from now, as the deadline of an attempt.
std::chrono::system_clock::time_point After(Duration delay);

// Thread-safe.
class CoordinatorCalls {
 public:
  struct Options {
    // The coordinator's address, for messages.
    std::string address;
    // Seeds the random pauses between attempts.
    uint64_t nonce = 0;
    std::function<void(Duration)> sleep;
    std::function<Time()> now;
  };

  // The time limit of an attempt. The coordinator answers at once, so an attempt beyond this limit
  // counts as failed.
  static constexpr Duration kAttempt = std::chrono::seconds(20);

  CoordinatorCalls(std::shared_ptr<grpc::Channel> channel, Options options);

  v1::Coordinator::Stub& stub() { return *stub_; }
  Time now() const { return options_.now(); }
  void Sleep(Duration pause) { options_.sleep(pause); }

  // Repeats `attempt` until the coordinator answers, `limits.total` is over, or `breaker` ends the
  // call. One attempt takes at most `attempt_max`. `what` describes the call in messages. Returns
  // UNAVAILABLE if no answer came in time, and CANCELLED if `breaker` ended the call.
  absl::Status Call(const std::string& what, const RetryLimits& limits,
                    const std::function<grpc::Status(grpc::ClientContext&)>& attempt,
                    CallBreaker* breaker = nullptr, Duration attempt_max = kAttempt);

 private:
  const Options options_;
  const std::unique_ptr<v1::Coordinator::Stub> stub_;
  std::atomic<uint64_t> calls_ = 0;
};

}  // namespace leeway
