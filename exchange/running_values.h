// Computes averaged values (common/update/averaging.h) for a worker that has running values only.
// The batches' own values follow from how far the running values have moved.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/update/averaging.h"
#include "common/update/clock_batches.h"
#include "leeway/v1/coordinator.pb.h"
#include "leeway/v1/job.pb.h"

namespace leeway {

class RunningValues {
 public:
  RunningValues(const v1::TrainingJob& job, const v1::ModelSchema& schema,
                const v1::JobLength& length);

  // Replaces the running values in `range` of `values`, which is a whole contribution. The new
  // values are the means over the batches' own values: before + (value - before) / share. The
  // running values began at those of `before`, and a clock of `examples` examples has moved them.
  void MakeMeans(const ElementRange& range, uint64_t examples, std::span<const float> before,
                 std::span<float> values) const;

 private:
  const std::vector<AveragedElements> averaged_;
  const ClockBatches batches_;
};

}  // namespace leeway
