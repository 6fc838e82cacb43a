// How fast a device's memory is filled from the host's, and read back.
#pragma once

#include <cstddef>

#include "absl/status/statusor.h"
#include "worker/compute/backend.h"

namespace leeway {

// Bytes a second of copies from and to pinned memory.
struct LinkRates {
  double up = 0;
  double down = 0;
  // Of both directions together, while copies go both ways at once.
  double both = 0;
};

// The best of three copies of `bytes` each, after one that is not counted. The device's error, and
// UNIMPLEMENTED where host and device are one.
absl::StatusOr<LinkRates> MeasureLinkRates(Backend& backend, size_t bytes = size_t{64} << 20);

}  // namespace leeway
