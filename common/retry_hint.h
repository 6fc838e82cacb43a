// Whether to send a request again, and when. When is said with the refusal. On a stream it travels
// in the reply (StreamReply.retry_after_ms), with a unary call as the trailing metadata that gRPC's
// own retry policy honours (gRFC A6, server pushback).
#pragma once

#include <chrono>
#include <optional>

#include "absl/status/status.h"
#include "common/clock.h"

namespace leeway {

// Worth sending again unchanged: UNAVAILABLE, DEADLINE_EXCEEDED, CANCELLED, each of which may mean
// that the request was carried out and the answer lost, which the server recognises by the
// request's identity. (So is RESOURCE_EXHAUSTED that says when: there is no room for it now.) What
// was said on the way to the server is among them, whatever its code (grpc_status.h).
bool IsRetryable(absl::StatusCode code);

inline constexpr char kRetryPushbackKey[] = "grpc-retry-pushback-ms";

// `status`, not OK, with the hint; whole milliseconds, at least one.
absl::Status WithRetryHint(absl::Status status, Duration after);
// Nothing: it has none.
std::optional<std::chrono::milliseconds> RetryHintOf(const absl::Status& status);

}  // namespace leeway
