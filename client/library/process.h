// What all uses of Leeway in this process share.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "client/session/call_breaker.h"
#include "client/session/coordinator_session.h"

namespace leeway {

// Sets up the log, the keys and gRPC, once. INVALID_ARGUMENT for an invalid environment.
absl::Status PrepareProcess();

// How this process speaks to the coordinator at `address`. When `breaker` breaks, registrations end
// at once, and other calls give up as if they had waited long enough. `nonce` tells a retry from a
// new life.
CoordinatorSession::Options SessionOptions(const std::string& address, uint64_t nonce,
                                           CallBreaker& breaker);

}  // namespace leeway
