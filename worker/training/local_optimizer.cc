#include "worker/training/local_optimizer.h"

#include <utility>
#include <vector>

#include "common/status.h"
#include "common/update/factors.h"
#include "common/update/job_rule.h"

namespace leeway {

std::vector<LocalAverage> LocalAverages(const v1::ModelSchema& schema, double batches_before) {
  std::vector<LocalAverage> averages;
  for (const AveragedElements& elements : AveragedElementsOf(schema)) {
    averages.push_back({elements, batches_before});
  }
  return averages;
}

absl::StatusOr<LocalOptimizer> LocalOptimizer::Make(const v1::TrainingJob& job,
                                                    const v1::ModelSchema& schema,
                                                    const v1::JobLength& length) {
  const v1::Exchange& exchange = job.exchange();
  const v1::Update& update =
      exchange.has_elastic() ? exchange.elastic().optimizer() : exchange.delta().optimizer();
  ASSIGN_OR_RETURN(std::unique_ptr<UpdateRule> rule, MakeLocalRule(job));
  return LocalOptimizer(std::move(rule), Schedule::OverSteps(update, length, job.workers().count()),
                        schema.trained(), UpdatePartsOf(schema, update));
}

LocalOptimizer::LocalOptimizer(std::unique_ptr<UpdateRule> rule, Schedule schedule, size_t trained,
                               std::vector<UpdatePart> parts)
    : rule_(std::move(rule)),
      schedule_(std::move(schedule)),
      trained_(trained),
      parts_(std::move(parts)) {}

VectorUpdate LocalOptimizer::UpdateOf(uint64_t step, uint64_t number,
                                      std::span<const float> contribution,
                                      std::span<const LocalAverage> averages,
                                      std::span<float> weights) const {
  VectorUpdate update{.rule = rule_.get(),
                      .step = {LearningRate(step), number},
                      .count = weights.size(),
                      .trained = trained_,
                      .parts = parts_,
                      .contribution = contribution.data(),
                      .weights = weights.data()};
  for (const LocalAverage& average : averages) {
    const double share = JoiningShare(average.elements.momentum, average.batches_before);
    update.averages.push_back({average.elements.range.end(), static_cast<float>(share)});
  }
  return update;
}

}  // namespace leeway
