#include "exchange/running_values.h"

namespace leeway {

RunningValues::RunningValues(const v1::TrainingJob& job, const v1::ModelSchema& schema,
                             const v1::JobLength& length)
    : averaged_(AveragedElementsOf(schema)),
      batches_{static_cast<double>(job.data().batch_size()), length} {}

void RunningValues::MakeMeans(const ElementRange& range, uint64_t examples,
                              std::span<const float> before, std::span<float> values) const {
  for (const AveragedElements& part : Within(averaged_, range)) {
    const double share = MovedShare(part.momentum, batches_.Of(examples));
    for (uint64_t i = part.range.offset; i < part.range.end(); ++i) {
      const double moved = static_cast<double>(values[i]) - before[i];
      values[i] = share > 0 ? static_cast<float>(before[i] + moved / share) : before[i];
    }
  }
}

}  // namespace leeway
