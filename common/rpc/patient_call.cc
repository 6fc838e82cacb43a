#include "common/rpc/patient_call.h"

#include <algorithm>
#include <chrono>

#include "common/retry_hint.h"
#include "common/rpc/grpc_status.h"

namespace leeway {
namespace {

constexpr Duration kPause = std::chrono::milliseconds(100);

}  // namespace

absl::Status CallPatiently(const PatientCall& patience,
                           const std::function<grpc::Status(grpc::ClientContext&)>& attempt) {
  const Time end = std::chrono::steady_clock::now() + patience.total;
  while (true) {
    const Duration left = end - std::chrono::steady_clock::now();
    grpc::ClientContext context;
    context.set_wait_for_ready(true);
    context.set_deadline(std::chrono::system_clock::now() +
                         std::chrono::duration_cast<std::chrono::microseconds>(
                             std::clamp<Duration>(left, Duration::zero(), patience.attempt_max)));
    const grpc::Status answer = attempt(context);
    const absl::Status status = ResultOf(answer, context);
    if (status.ok() || !IsRetryable(status.code())) return status;
    if (std::chrono::steady_clock::now() + kPause >= end || !patience.pause(kPause)) return status;
  }
}

}  // namespace leeway
