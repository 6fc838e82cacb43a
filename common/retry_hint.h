// When to send a refused request again, said with the refusal. On a stream it travels in the reply
// (StreamReply.retry_after_ms), with a unary call as the trailing metadata that gRPC's own retry
// policy honours (gRFC A6, server pushback).
#pragma once

#include <chrono>
#include <optional>

#include "absl/status/status.h"
#include "common/clock.h"

namespace leeway {

inline constexpr char kRetryPushbackKey[] = "grpc-retry-pushback-ms";

// `status`, not OK, with the hint; whole milliseconds, at least one.
absl::Status WithRetryHint(absl::Status status, Duration after);
// Nothing: it has none.
std::optional<std::chrono::milliseconds> RetryHintOf(const absl::Status& status);

}  // namespace leeway
