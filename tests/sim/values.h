// Numbers in place of weights: two blocks have equal numbers only if the same contributions were
// applied to them in the same order.
#pragma once

#include <cstdint>

#include "tests/sim/shape.h"

namespace leeway::sim {

// Marks a block whose memory is being written.
inline constexpr uint64_t kBeingWritten = 0;

// In sync mode: the values of a block after `clock` clocks, whatever was lost or repeated.
uint64_t ExpectedValues(const Shape& shape, uint32_t block, uint64_t clock);
// The contribution of a worker to a block: a function of everything that the worker has read.
uint64_t ContributionValue(uint32_t rank, uint64_t clock, uint32_t block, uint64_t read);
uint64_t FirstValues(uint32_t block);

}  // namespace leeway::sim
