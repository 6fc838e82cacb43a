// The optimizer of a worker that takes its own steps (delta and elastic exchanges). It applies the
// same rules as the servers do, to the whole vector.
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

// A range of averaged elements of a worker's own weights, all updated in the same way.
struct LocalAverage {
  AveragedElements elements;
  // The number of batches that the mean in these elements already covers, or infinity if they hold
  // a running value.
  double batches_before = 0;
};

// Returns all averaged elements of the model, each with the same `batches_before`.
std::vector<LocalAverage> LocalAverages(const v1::ModelSchema& schema, double batches_before);

// Immutable. The caller owns the slots.
class LocalOptimizer {
 public:
  // Makes the optimizer of the job's delta or elastic exchange. Returns the errors of
  // MakeLocalRule.
  static absl::StatusOr<LocalOptimizer> Make(const v1::TrainingJob& job,
                                             const v1::ModelSchema& schema,
                                             const v1::JobLength& length);

  std::vector<std::string_view> slots() const { return rule_->slots(); }
  // Returns the value of a slot before the first step.
  float slot_start(size_t slot) const { return rule_->slot_start(slot); }
  float LearningRate(uint64_t step) const { return schedule_.LearningRate(step); }

  // Returns the update that subtracts a move from the weights. The rule computes the move from
  // `contribution` at local step `step`. This is the optimizer's `number`-th update, counted from
  // 1. The averaged elements absorb the batch's own values (common/update/averaging.h); `averages`
  // lists all of them in order. All vectors are on the device. The caller adds one whole vector for
  // each of slots(). The optimizer must outlive the update.
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
