// Update rules: how an aggregated contribution changes weights. The servers apply the job's
// `update` with them, and workers with a delta or elastic exchange their local optimizer: the same
// code.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace leeway {

namespace v1 {
class TrainingJob;
class Update;
}  // namespace v1

// One tile of one update. `out` may equal `in`; otherwise they do not overlap: so an immutable
// version is read and the next one written in the same pass.
struct UpdateTile {
  size_t count = 0;
  const float* weights_in = nullptr;
  float* weights_out = nullptr;
  // The gradient, or for a delta exchange what the weights lost (x_start - x_end): same sign.
  const float* gradient = nullptr;
  // By slot index.
  const float* const* slots_in = nullptr;
  float* const* slots_out = nullptr;
};

// Of the update as a whole.
struct UpdateStep {
  // Already times the schedule's factor.
  float learning_rate = 0;
  // Updates applied before this one, plus 1: Adam's t.
  uint64_t number = 1;
  // Adam's bias corrections, 1 - beta^t; 0: not worked out yet.
  double correction1 = 0;
  double correction2 = 0;
};

// Immutable and thread-safe. Elementwise: the result for an element depends on nothing but that
// element, so blocks and tiles may be cut anywhere (the same bits come out).
class UpdateRule {
 public:
  virtual ~UpdateRule() = default;
  // Names of the optimizer state that the rule keeps for each element, zero at the start.
  virtual std::vector<std::string_view> slots() const { return {}; }
  // Works out what is the same for all tiles of the step. Apply does without, but takes longer.
  virtual void Prepare(UpdateStep& step) const {}
  // False: some weight or slot that it wrote is not finite. So it is wherever the gradient is not:
  // no rule makes a finite weight of that.
  virtual bool Apply(const UpdateStep& step, const UpdateTile& tile) const = 0;
};

// The rule that `update` names. One file a rule; make.cc is the one place that lists them.
// INVALID_ARGUMENT if it names none that this build knows.
absl::StatusOr<std::unique_ptr<UpdateRule>> MakeUpdateRule(const v1::Update& update);

// For averaged, not trained, values: x -= contribution. No slots; ignores the learning rate.
std::unique_ptr<UpdateRule> MakeAverageRule();

// The elastic centre (EASGD, Zhang, Choromanska, LeCun 2015, equations 5 and 6). A contribution is
// the worker's x; `gradient` is sum over contributions of (x_i - weights_in), formed by
// common/update/apply.h: centre += alpha * gradient. No slots; ignores the learning rate.
std::unique_ptr<UpdateRule> MakeElasticRule(double alpha);

// What a job's servers update by: the elastic rule, or the job's `update`.
absl::StatusOr<std::unique_ptr<UpdateRule>> MakeServerRule(const v1::TrainingJob& job);

}  // namespace leeway
