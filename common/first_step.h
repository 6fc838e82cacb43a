// Converts between a worker's clocks and its steps. All code uses these functions to convert them.
#pragma once

#include <algorithm>
#include <cstdint>

#include "leeway/v1/coordinator.pb.h"

namespace leeway {

// Returns the first step of clock `clock`, which must not be below length.first_clock. From
// length.first_clock on, all workers use the numbers in `length`.
inline uint64_t FirstStep(const v1::JobLength& length, uint64_t clock) {
  const uint64_t since = clock - std::min(clock, length.first_clock());
  return length.first_step() + since * length.steps_per_clock();
}

inline uint64_t ClockOfStep(const v1::JobLength& length, uint64_t step) {
  const uint64_t since = step - std::min(step, length.first_step());
  return length.first_clock() + since / std::max<uint64_t>(length.steps_per_clock(), 1);
}

}  // namespace leeway
