// The optimizer of a worker that takes steps of its own (delta and elastic exchanges): the same
// rules as the servers', over the whole vector.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "common/buffer.h"
#include "common/update/rule.h"
#include "common/update/schedule.h"
#include "leeway/v1/coordinator.pb.h"
#include "leeway/v1/job.pb.h"

namespace leeway {

// Immutable; the slots are the caller's.
class LocalOptimizer {
 public:
  static absl::StatusOr<LocalOptimizer> Make(const v1::Update& update,
                                             const v1::ModelSchema& schema,
                                             const v1::JobLength& length);

  // Their names.
  std::vector<std::string_view> slots() const { return rule_->slots(); }
  float LearningRate(uint64_t step) const { return schedule_.LearningRate(step); }

  // weights -= the rule's move for `contribution` at local step `step`, the `number`-th update
  // (from 1); averaged elements take the contribution as it is. `slots` as many as slots(), whole
  // vectors. False: what it wrote is not all finite, and must not be used.
  bool Apply(uint64_t step, uint64_t number, std::span<const float> contribution,
             std::span<float> weights, std::span<FloatBuffer> slots) const;

 private:
  LocalOptimizer(std::unique_ptr<UpdateRule> rule, Schedule schedule, size_t trained);

  std::unique_ptr<UpdateRule> rule_;
  Schedule schedule_;
  size_t trained_;
};

}  // namespace leeway
