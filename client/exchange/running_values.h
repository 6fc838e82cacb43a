// Averaged values (common/update/averaging.h) of a worker that has running values only: what its
// batches' own values were follows from how far they have moved the running ones.
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

  // `values` is a whole contribution whose averaged elements in `range` have running values, that
  // began at those of `before` and that a clock of so many examples has moved. They become the mean
  // of the batches' own values, which moves `before` to them: before + (value - before) / share.
  void MakeMeans(const ElementRange& range, uint64_t examples, std::span<const float> before,
                 std::span<float> values) const;

 private:
  const std::vector<AveragedElements> averaged_;
  const ClockBatches batches_;
};

}  // namespace leeway
