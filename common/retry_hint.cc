#include "common/retry_hint.h"

#include <algorithm>
#include <chrono>
#include <string>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace leeway {
namespace {

constexpr char kRetryPayload[] = "leeway/retry-after-ms";

}  // namespace

bool IsRetryable(absl::StatusCode code) {
  return code == absl::StatusCode::kUnavailable || code == absl::StatusCode::kDeadlineExceeded ||
         code == absl::StatusCode::kCancelled;
}

absl::Status WithRetryHint(absl::Status status, Duration after) {
  const auto count = std::chrono::ceil<std::chrono::milliseconds>(after).count();
  status.SetPayload(kRetryPayload, absl::Cord(absl::StrCat(std::max<int64_t>(count, 1))));
  return status;
}

std::optional<std::chrono::milliseconds> RetryHintOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kRetryPayload);
  uint32_t count = 0;
  if (!payload.has_value() || !absl::SimpleAtoi(std::string(*payload), &count)) return std::nullopt;
  return std::chrono::milliseconds(count);
}

}  // namespace leeway
