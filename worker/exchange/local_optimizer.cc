#include "worker/exchange/local_optimizer.h"

#include <utility>
#include <vector>

#include "common/status.h"
#include "common/update/apply.h"
#include "common/wire/payload.h"

namespace leeway {

std::vector<LocalAverage> LocalAverages(const v1::ModelSchema& schema, double batches_before) {
  std::vector<LocalAverage> averages;
  for (const AveragedElements& elements : AveragedElementsOf(schema)) {
    averages.push_back({elements, batches_before});
  }
  return averages;
}

absl::StatusOr<LocalOptimizer> LocalOptimizer::Make(const v1::Update& update,
                                                    const v1::ModelSchema& schema,
                                                    const v1::JobLength& length) {
  ASSIGN_OR_RETURN(std::unique_ptr<UpdateRule> rule, MakeUpdateRule(update));
  return LocalOptimizer(std::move(rule), Schedule::OverSteps(update, length), schema.trained());
}

LocalOptimizer::LocalOptimizer(std::unique_ptr<UpdateRule> rule, Schedule schedule, size_t trained)
    : rule_(std::move(rule)), schedule_(std::move(schedule)), trained_(trained) {}

bool LocalOptimizer::Apply(uint64_t step, uint64_t number, std::span<const float> contribution,
                           std::span<const LocalAverage> averages, std::span<float> weights,
                           std::span<FloatBuffer> slots) const {
  const FloatPayload payload = FloatPayload::Of(contribution);
  const FloatPayload* const contributions[] = {&payload};
  const float coefficients[] = {1.0f};
  std::vector<float*> out;
  for (FloatBuffer& slot : slots) out.push_back(slot.data());
  const std::vector<const float*> in(out.begin(), out.end());

  std::vector<float> shares;
  shares.reserve(averages.size());
  std::vector<AveragedMove> moves;
  for (const LocalAverage& average : averages) {
    shares.push_back(
        static_cast<float>(JoiningShare(average.elements.momentum, average.batches_before)));
    moves.push_back({average.elements.range.end(), std::span(shares).last(1)});
  }

  BlockUpdate update;
  update.rule = rule_.get();
  update.step = {LearningRate(step), number};
  update.contributions = contributions;
  update.coefficients = coefficients;
  update.count = weights.size();
  update.trained = trained_;
  update.averaged = moves;
  update.weights_in = weights.data();
  update.weights_out = weights.data();
  update.slots_in = in;
  update.slots_out = out;
  return ApplyUpdate(update);
}

}  // namespace leeway
