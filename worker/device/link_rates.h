// Measures how fast a device's memory is filled from the host's, and read back.
#pragma once

#include <cstddef>

#include "absl/status/statusor.h"
#include "worker/compute/backend.h"

namespace leeway {

// The rates of copies from and to pinned memory, in bytes a second.
struct LinkRates {
  double up = 0;
  double down = 0;
  // The sum of both directions while copies go both ways at once.
  double both = 0;
};

// Measures the best of three copies of `bytes` each, after one that does not count. Returns the
// device's error, or UNIMPLEMENTED if host and device share memory.
absl::StatusOr<LinkRates> MeasureLinkRates(Backend& backend, size_t bytes = size_t{64} << 20);

}  // namespace leeway
