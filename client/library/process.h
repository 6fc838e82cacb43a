// What all that this process does with Leeway has in common.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "client/session/call_breaker.h"
#include "client/session/coordinator_session.h"

namespace leeway {

// The log, the keys and gRPC's settings; once. INVALID_ARGUMENT for an environment that makes no
// sense.
absl::Status PrepareProcess();

// How this process speaks to the coordinator at `address`, until `breaker` is broken: then
// registrations end at once, and other calls give up as if they had waited long enough. `nonce`
// tells a retry from a new life.
CoordinatorSession::Options SessionOptions(const std::string& address, uint64_t nonce,
                                           CallBreaker& breaker);

}  // namespace leeway
