#include "client/session/coordinator_calls.h"

#include <algorithm>
#include <utility>

#include <spdlog/spdlog.h>

#include "absl/strings/str_cat.h"
#include "common/rpc/grpc_status.h"
#include "common/status.h"

namespace leeway {
namespace {

// Turns a missed deadline into UNAVAILABLE, because a new life may reach the coordinator.
absl::Status MayPass(const absl::Status& error) {
  return absl::IsDeadlineExceeded(error) ? absl::UnavailableError(error.message()) : error;
}

}  // namespace

std::chrono::system_clock::time_point After(Duration delay) {
  return std::chrono::system_clock::now() +
         std::chrono::duration_cast<std::chrono::system_clock::duration>(delay);
}

CoordinatorCalls::CoordinatorCalls(std::shared_ptr<grpc::Channel> channel, Options options)
    : options_(std::move(options)), stub_(v1::Coordinator::NewStub(std::move(channel))) {}

absl::Status CoordinatorCalls::Call(
    const std::string& what, const RetryLimits& limits,
    const std::function<grpc::Status(grpc::ClientContext&)>& attempt, CallBreaker* breaker,
    Duration attempt_max) {
  RetryCore core(limits, RandomStream(options_.nonce, RandomPurpose::kRetry, {++calls_}));
  const Time began = options_.now();
  std::string logged;
  while (true) {
    const Time now = options_.now();
    grpc::ClientContext context;
    context.set_deadline(After(std::clamp<Duration>(limits.total - (now - began),
                                                    std::chrono::milliseconds(1), attempt_max)));
    if (breaker != nullptr && !breaker->Begin(&context)) return absl::CancelledError(what);
    const grpc::Status answer = attempt(context);
    const absl::Status status = ResultOf(answer, context);
    if (breaker != nullptr) breaker->End();
    if (status.ok()) return status;
    const Time failed = options_.now();
    const RetryDecision decision = core.OnFailure(status, failed - now, failed - began);
    if (!decision.error.ok()) {
      return Annotate(MayPass(decision.error),
                      absl::StrCat(what, " (coordinator ", options_.address, ")"));
    }
    if (core.told() != logged) {
      spdlog::info("{}: {}", what, core.told());
      logged = core.told();
    }
    if (decision.delay <= Duration::zero()) continue;
    if (breaker != nullptr) {
      breaker->Pause(decision.delay);
    } else {
      options_.sleep(decision.delay);
    }
  }
}

}  // namespace leeway
