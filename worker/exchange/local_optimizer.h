// The optimizer of a worker that takes steps of its own (delta and elastic exchanges): the same
// rules as the servers', over the whole vector.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "common/update/averaging.h"
#include "common/update/rule.h"
#include "common/update/schedule.h"
#include "leeway/v1/coordinator.pb.h"
#include "leeway/v1/job.pb.h"
#include "worker/compute/backend.h"

namespace leeway {

// Averaged elements of a worker's own weights that move alike.
struct LocalAverage {
  AveragedElements elements;
  // Batches that are in the mean which they hold; infinity: they are a running value.
  double batches_before = 0;
};

// All of a model's, with as many batches each.
std::vector<LocalAverage> LocalAverages(const v1::ModelSchema& schema, double batches_before);

// Immutable; the slots are the caller's.
class LocalOptimizer {
 public:
  // That of the job's delta or elastic exchange. MakeLocalRule's error.
  static absl::StatusOr<LocalOptimizer> Make(const v1::TrainingJob& job,
                                             const v1::ModelSchema& schema,
                                             const v1::JobLength& length);

  // Their names.
  std::vector<std::string_view> slots() const { return rule_->slots(); }
  // Before the first step.
  float slot_start(size_t slot) const { return rule_->slot_start(slot); }
  float LearningRate(uint64_t step) const { return schedule_.LearningRate(step); }

  // weights -= the rule's move for `contribution` at local step `step`, the `number`-th update
  // (from 1). The averaged elements, all of them in order in `averages`, absorb the batch's own
  // values (common/update/averaging.h). Vectors are the device's, and the caller adds the slots, as
  // many as slots(): whole vectors. The optimizer outlives the update.
  VectorUpdate UpdateOf(uint64_t step, uint64_t number, std::span<const float> contribution,
                        std::span<const LocalAverage> averages, std::span<float> weights) const;

 private:
  LocalOptimizer(std::unique_ptr<UpdateRule> rule, Schedule schedule, size_t trained,
                 std::vector<UpdatePart> parts);

  std::unique_ptr<UpdateRule> rule_;
  Schedule schedule_;
  size_t trained_;
  std::vector<UpdatePart> parts_;
};

}  // namespace leeway
