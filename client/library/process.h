// What all that this process does with Leeway has in common.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "client/coordinator_session.h"

namespace leeway {

// The log, the keys and gRPC's settings; once. INVALID_ARGUMENT for an environment that makes no
// sense.
absl::Status PrepareProcess();

// How this process speaks to the coordinator at `address`, until `cancelled`: then it gives up as
// if it had waited long enough. `nonce` tells a retry from a new life.
CoordinatorSession::Options SessionOptions(const std::string& address, uint64_t nonce,
                                           const std::atomic<bool>& cancelled);

}  // namespace leeway
