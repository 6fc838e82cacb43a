// Checks of a layer's own numbers. The YAML reader has already made most of these checks, but a job
// may also come over the network.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace leeway {

// Returns INVALID_ARGUMENT unless low <= value <= high.
inline absl::Status CheckRange(absl::string_view name, uint64_t value, uint64_t low,
                               uint64_t high) {
  if (value >= low && value <= high) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(name, " ", value, " is outside ", low, " to ", high));
}

}  // namespace leeway
