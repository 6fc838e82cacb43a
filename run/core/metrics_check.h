// Checks that the numbers in a heartbeat are possible.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "leeway/v1/coordinator.pb.h"

namespace leeway {

// Returns INVALID_ARGUMENT, naming the number, if a number is impossible. This is an epoch or a
// time that is negative or not finite, a share above 1, a clock beyond `largest_clock`, or an
// absurdly high count. A loss and a regression's errors may have any value, because training can
// diverge and the metrics must show that.
absl::Status CheckMetrics(const v1::HeartbeatRequest& request, uint64_t largest_clock);

}  // namespace leeway
