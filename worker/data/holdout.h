// Chooses the examples that a job without a test source holds out from training.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"

namespace leeway {

// The part of the training source that a caller wants.
enum class Part { kAll, kWithoutHoldout, kHoldout };

// Returns for each of the `count` examples of file `index` whether it is held out. The number of
// held-out examples is share * count, rounded. At least one example is not held out. The result is
// a pure function of the arguments, so training and evaluation agree.
std::vector<bool> HeldOut(uint64_t seed, size_t index, size_t count, double share);

// Returns INVALID_ARGUMENT at data.holdout, the error for a share so small that no example is held
// out.
absl::Status NothingHeldOut(double share);

}  // namespace leeway
