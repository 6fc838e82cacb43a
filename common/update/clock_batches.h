// How many batches are behind a contribution: what moves averaged values
// (common/update/averaging.h).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace leeway {

struct ClockBatches {
  // Of a full batch.
  double batch_examples = 1;
  // Of one worker: steps of a clock, and of the job.
  uint64_t steps_per_clock = 1;
  uint64_t steps = 0;

  // Of a worker's contribution.
  double Of(uint64_t examples) const {
    return std::ceil(static_cast<double>(examples) / batch_examples);
  }
  // Of the sum of several workers' contributions to a clock (client/host_group.h). They were made
  // side by side, so they count as no more batches than the clock has steps.
  double OfSum(uint64_t clock, uint64_t examples) const {
    const uint64_t before = clock * steps_per_clock;
    const uint64_t left = steps > before ? steps - before : steps_per_clock;
    return std::min(Of(examples), static_cast<double>(std::min(left, steps_per_clock)));
  }
};

}  // namespace leeway
