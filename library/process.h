// Sets up what all jobs and watches in this process share.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "client/session/call_breaker.h"
#include "client/session/coordinator_session.h"

namespace leeway {

// Sets up the log, the keys and gRPC, once. Returns INVALID_ARGUMENT if an environment variable is
// invalid.
absl::Status PrepareProcess();

// Returns the options with which this process calls the coordinator at `address`. When `breaker`
// breaks, registrations end at once, and all other calls give up as if their time were over. By
// `nonce` the coordinator distinguishes a retry from a new life.
CoordinatorSession::Options SessionOptions(const std::string& address, uint64_t nonce,
                                           CallBreaker& breaker);

}  // namespace leeway
