// The number of batches behind a contribution, which decides how far the contribution moves
// averaged values (common/update/averaging.h).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "common/first_step.h"
#include "leeway/v1/coordinator.pb.h"

namespace leeway {

struct ClockBatches {
  // The number of examples in a full batch.
  double batch_examples = 1;
  v1::JobLength length;

  // Returns the number of batches behind one worker's contribution of `examples` examples.
  double Of(uint64_t examples) const {
    return std::ceil(static_cast<double>(examples) / batch_examples);
  }
  // Returns the number of batches behind the sum of several workers' contributions to a clock
  // (client/calls/host_group.h). The workers made these contributions at the same time. So the sum
  // counts as at most as many batches as the clock has steps.
  double OfSum(uint64_t clock, uint64_t examples) const {
    const uint64_t before = FirstStep(length, clock), steps = length.steps();
    const uint64_t each = std::max<uint64_t>(length.steps_per_clock(), 1);
    const uint64_t left = steps > before ? steps - before : each;
    return std::min(Of(examples), static_cast<double>(std::min(left, each)));
  }
};

}  // namespace leeway
