// Checks that the numbers in a heartbeat are possible.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "leeway/v1/coordinator.pb.h"

namespace leeway {

// INVALID_ARGUMENT naming the first number that no worker can have measured: an epoch or a time
// that is negative or not finite, a share above 1, a clock beyond `largest_clock`, an absurd count.
// A loss and a regression's errors may be anything, because training can diverge, and the record
// says so.
absl::Status CheckMetrics(const v1::HeartbeatRequest& request, uint64_t largest_clock);

}  // namespace leeway
