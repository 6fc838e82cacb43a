// Decides whether to send a request again, and carries the server's hint on how long to wait first.
// On a stream the hint is in the reply (StreamReply.retry_after_ms). For a unary call it is in the
// trailing metadata that gRPC's own retry policy honours (gRFC A6, server pushback).
#pragma once

#include <chrono>
#include <optional>

#include "absl/status/status.h"
#include "common/clock.h"

namespace leeway {

// Returns true for UNAVAILABLE, DEADLINE_EXCEEDED and CANCELLED. After these codes the same request
// may succeed if it is sent again. An error on the way to the server always has one of these codes
// (grpc_status.h). Each code may also mean that the server carried out the request and only the
// answer was lost. In this case the server recognises the repeated request by its identity.
// RESOURCE_EXHAUSTED with a hint is worth a retry, too, because the server's lack of memory is
// temporary.
bool IsRetryable(absl::StatusCode code);

inline constexpr char kRetryPushbackKey[] = "grpc-retry-pushback-ms";

// Returns `status`, which must not be OK, with the hint attached. The hint is in whole
// milliseconds, at least one.
absl::Status WithRetryHint(absl::Status status, Duration after);
// Returns the hint of `status`, or nothing if it has no hint.
std::optional<std::chrono::milliseconds> RetryHintOf(const absl::Status& status);

}  // namespace leeway
