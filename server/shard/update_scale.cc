#include "server/shard/update_scale.h"

#include <algorithm>

#include "absl/container/inlined_vector.h"
#include "common/update/combine.h"
#include "config/topology.h"

namespace leeway {

UpdateScale::UpdateScale(const v1::TrainingJob& job, const v1::JobLength& length)
    : sync_(job.consistency().mode() == v1::CONSISTENCY_MODE_SYNC),
      gossip_(IsGossip(job)),
      combines_(job.workers().per_host() == v1::PER_HOST_COMBINE),
      equal_weights_(job.exchange().delta().weighting() == v1::WEIGHTING_EQUAL),
      workers_(job.workers().count()),
      ends_by_sum_(length.total_clocks() > 0),
      batches_{std::max<double>(job.data().batch_size(), 1), length},
      nominal_examples_(batches_.batch_examples *
                        std::max(static_cast<double>(length.steps_per_clock()), 1.0)),
      schedule_(job.exchange().has_elastic()
                    ? std::nullopt
                    : std::optional(Schedule::OverClocks(job.update(), length, workers_))) {}

UpdateStep UpdateScale::StepOf(const BlockProgress& progress, uint32_t live, uint64_t clock) const {
  UpdateStep step;
  step.number = progress.updates + 1;
  if (!schedule_.has_value()) return step;
  if (ends_by_sum_) clock = progress.version / workers_;
  // The mean of all weights has a part of each worker, also of those that have ended.
  const uint32_t members = sync_ ? 1 : gossip_ ? workers_ : std::max<uint32_t>(live, 1);
  step.learning_rate =
      sync_ ? schedule_->LearningRate(clock) : schedule_->ShareOfRate(clock, members);
  step.share = 1.0 / members;
  return step;
}

ContributionWeights UpdateScale::WeightsOf(const std::vector<Contribution>& contributions) const {
  absl::InlinedVector<uint64_t, 8> sizes;
  absl::InlinedVector<double, 8> batches;
  for (const Contribution& contribution : contributions) {
    if (!contribution.has_values()) continue;
    sizes.push_back(equal_weights_ ? contribution.examples > 0 : contribution.examples);
    batches.push_back(BatchesOf(contribution));
  }
  const std::vector<float> shares = sync_ ? MeanCoefficients(sizes) : std::vector<float>();
  ContributionWeights weights;
  for (size_t i = 0; i < sizes.size(); ++i) {
    ContributionWeight& weight = weights.emplace_back();
    const double alone = static_cast<double>(sizes[i]) / (equal_weights_ ? 1.0 : nominal_examples_);
    weight.trained = sync_ ? shares[i] : static_cast<float>(alone);
    weight.averaged = sync_ ? shares[i] : std::min(alone, 1.0) / workers_;
    weight.batches = batches[i];
  }
  return weights;
}

double UpdateScale::BatchesOf(const Contribution& contribution) const {
  return combines_ || contribution.of_all
             ? batches_.OfSum(contribution.clock, contribution.examples)
             : batches_.Of(contribution.examples);
}

}  // namespace leeway
