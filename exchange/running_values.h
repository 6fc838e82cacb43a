// Computes each batch's own values of the averaged elements (common/update/averaging.h) for a
// worker that has running values only. A batch's values follow from how far it moved the running
// values.
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

  // Replaces running values by the means over the batches' own values: before + (value - before) /
  // share. `values` is a whole contribution, of which the function changes `range`. At the start of
  // the clock the running values were those in `before`, and `examples` examples have moved them
  // since.
  void MakeMeans(const ElementRange& range, uint64_t examples, std::span<const float> before,
                 std::span<float> values) const;

 private:
  const std::vector<AveragedElements> averaged_;
  const ClockBatches batches_;
};

}  // namespace leeway
