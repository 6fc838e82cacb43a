// Which examples are kept from training, for a job that has no test source.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"

namespace leeway {

// Which part of the training source is wanted.
enum class Part { kAll, kWithoutHoldout, kHoldout };

// A flag for each of the `count` examples of file `index`: whether it is held out. share * count of
// them, rounded, but never all; a pure function of the arguments, so that training and evaluation
// agree.
std::vector<bool> HeldOut(uint64_t seed, size_t index, size_t count, double share);

// INVALID_ARGUMENT at data.holdout: the share is so small that no example is held out.
absl::Status NothingHeldOut(double share);

}  // namespace leeway
