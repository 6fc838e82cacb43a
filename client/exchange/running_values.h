// Averaged values (common/update/averaging.h) of a worker that has running values only. The
// distance that the running values have moved gives the batches' own values.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/update/averaging.h"
#include "common/update/clock_batches.h"
#include "leeway/v1/coordinator.pb.h"

namespace leeway {

class RunningValues {
 public:
  explicit RunningValues(const v1::RegisterWorkerReply& registration);

  // `values` is a whole contribution. Its averaged elements in `range` have running values, which
  // began at those of `before` and were moved by a clock of `examples`. They become the mean of the
  // batches' own values: before + (value - before) / share.
  void MakeMeans(const ElementRange& range, uint64_t examples, std::span<const float> before,
                 std::span<float> values) const;

 private:
  const std::vector<AveragedElements> averaged_;
  const ClockBatches batches_;
};

}  // namespace leeway
