// Measures how fast the host's memory is copied to a device's memory, and back.
#pragma once

#include <cstddef>

#include "absl/status/statusor.h"
#include "worker/compute/backend.h"

namespace leeway {

// The rates of copies from and to pinned memory, in bytes per second.
struct LinkRates {
  double up = 0;
  double down = 0;
  // The sum of both directions while both kinds of copies run at the same time.
  double both = 0;
};

// Measures the best of three copies of `bytes` each, after one copy that does not count. Returns
// the device's error, or UNIMPLEMENTED if host and device share memory.
absl::StatusOr<LinkRates> MeasureLinkRates(Backend& backend, size_t bytes = size_t{64} << 20);

}  // namespace leeway
