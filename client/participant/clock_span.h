// The steps of a clock.
#pragma once

#include <cstdint>

namespace leeway {

// The worker's steps that belong to one clock.
struct ClockSpan {
  uint64_t clock = 0;
  uint64_t first_step = 0;
  uint64_t steps = 0;
};

}  // namespace leeway
