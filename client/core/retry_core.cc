#include "client/core/retry_core.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_format.h"

namespace leeway {

RetryCore::RetryCore(const RetryLimits& limits, RandomStream jitter)
    : limits_(limits),
      jitter_(std::move(jitter)),
      backoff_(limits.backoff_min, limits.backoff_max) {}

RetryDecision RetryCore::OnFailure(const absl::Status& status, Duration took, Duration elapsed) {
  // RESOURCE_EXHAUSTED without a hint is final, because its cause lasts: a full disk, or a message
  // that is too large.
  const std::optional<Duration> hint = RetryHintOf(status);
  const bool later = absl::IsResourceExhausted(status) && hint.has_value();
  if (!later && !IsRetryable(status.code())) return {status, {}};
  const bool says_why = absl::IsUnavailable(status) || absl::IsResourceExhausted(status);
  if (told_.empty() || says_why) told_ = std::string(status.message());
  if (elapsed >= limits_.total) {
    return {absl::DeadlineExceededError(absl::StrFormat(
                "given up after %.3g s (%s is %.3g); last answer: %s", Seconds(elapsed),
                limits_.total_name, Seconds(limits_.total), told_)),
            {}};
  }
  // The server has held this attempt, so the call has waited already and needs no pause. An attempt
  // that the server refused with a hint has not waited.
  if (!hint && took >= limits_.held) {
    backoff_.Reset();
    return {absl::OkStatus(), Duration::zero()};
  }
  // The pause is at least the hint. After several failures it is longer, because the server does
  // not know that an earlier hint was too short.
  const Duration at_least = std::min(hint.value_or(Duration::zero()), limits_.hint_max);
  return {absl::OkStatus(), std::min(std::max(at_least, NextPause()), limits_.total - elapsed)};
}

Duration RetryCore::NextPause() {
  return FromSeconds(Seconds(backoff_.Next()) * (0.5 + 0.5 * jitter_.Uniform()));
}

}  // namespace leeway
