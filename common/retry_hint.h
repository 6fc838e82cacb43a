// Says whether and when to send a request again. A refusal carries the time: on a stream in the
// reply (StreamReply.retry_after_ms), for a unary call in the trailing metadata that gRPC's own
// retry policy honours (gRFC A6, server pushback).
#pragma once

#include <chrono>
#include <optional>

#include "absl/status/status.h"
#include "common/clock.h"

namespace leeway {

// True for UNAVAILABLE, DEADLINE_EXCEEDED and CANCELLED: sending the request again unchanged may
// succeed. Each of these codes may also mean that the request was carried out and the answer lost;
// the server then recognises the request by its identity. Errors that arose on the way to the
// server have one of these codes (grpc_status.h). RESOURCE_EXHAUSTED with a hint is also worth a
// retry: the server has no room now.
bool IsRetryable(absl::StatusCode code);

inline constexpr char kRetryPushbackKey[] = "grpc-retry-pushback-ms";

// Returns `status`, which is not OK, with the hint in whole milliseconds, at least one.
absl::Status WithRetryHint(absl::Status status, Duration after);
// Returns nothing if the status has no hint.
std::optional<std::chrono::milliseconds> RetryHintOf(const absl::Status& status);

}  // namespace leeway
