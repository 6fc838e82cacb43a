// Update rules: how an aggregated contribution changes weights. The servers use them for the job's
// `update`. Workers with a delta or elastic exchange use the same code for their local optimizer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace leeway {

namespace v1 {
class TrainingJob;
class Update;
}  // namespace v1

// One tile of one update. Each output may be the same memory as its input; otherwise the two do not
// overlap. So one pass can read an immutable version and write the next version.
struct UpdateTile {
  size_t count = 0;
  const float* weights_in = nullptr;
  float* weights_out = nullptr;
  // The gradient, or in a delta exchange the decrease of the weights (x_start - x_end). Both have
  // the same sign.
  const float* gradient = nullptr;
  // One pointer for each slot of the rule, in the order of slots().
  const float* const* slots_in = nullptr;
  float* const* slots_out = nullptr;
};

// The elements from the end of the previous part up to `end`, and their factors of learning rate
// and weight decay (common/update/factors.h).
struct UpdatePart {
  size_t end = 0;
  double rate = 1;
  double decay = 1;
  // If true, the step leaves the weights and slots of these elements unchanged.
  bool skip = false;
};

// What a contribution specifies about its update, in parts that cover all trained elements: the
// factor of the learning rate, and which elements are skipped. If null, the contribution updates
// all elements with the unchanged rate.
using ContributionRates = std::shared_ptr<const std::vector<UpdatePart>>;

// The values that are the same for all tiles of an update or of one of its parts.
struct UpdateStep {
  // Includes the schedule's factor and the division for `share`.
  float learning_rate = 0;
  // The number of updates applied before this one, plus 1: Adam's t. It counts updates of the
  // block, except for a rule that counts them by element (MakeStepsByElementRule).
  uint64_t number = 1;
  // Adam's bias corrections, 1 - beta^t. They are 0 until they are computed.
  double correction1 = 0;
  double correction2 = 0;
  // The factor of the rule's weight decay.
  double decay = 1;
  // This update's share of a clock. It is less than 1 if each contribution is applied alone.
  double share = 1;

  // Returns a rule's weight decay in this step.
  float Decay(double weight_decay) const { return static_cast<float>(weight_decay * decay); }
  // Returns this step with the factors of `part`.
  UpdateStep In(const UpdatePart& part) const {
    UpdateStep step = *this;
    step.learning_rate = static_cast<float>(learning_rate * part.rate);
    step.decay = decay * part.decay;
    return step;
  }
};

// Returns the share of a weight that is left after decoupled weight decay.
inline float KeptShare(const UpdateStep& step, double weight_decay) {
  return static_cast<float>(1 - step.learning_rate * weight_decay * step.decay);
}

// The names of UpdateRule::average_slot() and steps_slot(), also in checkpoints.
inline constexpr std::string_view kAverageSlot = "average";
inline constexpr std::string_view kStepsSlot = "steps";

struct UpdateFormula;

// Immutable and thread-safe. Elementwise: the result for an element depends only on that element.
// So the borders of blocks and tiles do not change the bits.
class UpdateRule {
 public:
  virtual ~UpdateRule() = default;
  // Return the names (slots) and initial values of the state that the rule keeps for each element.
  virtual std::vector<std::string_view> slots() const { return {}; }
  virtual float slot_start(size_t slot) const { return 0; }
  // Returns the slot that is a moving average of the weights. It starts as a copy of the weights.
  // For elements that are averaged, not trained, it stays equal to the weights.
  virtual std::optional<size_t> average_slot() const { return std::nullopt; }
  // Returns the slot that counts the updates of each element. If a rule has such a slot, the
  // caller's UpdateStep::number is ignored.
  virtual std::optional<size_t> steps_slot() const { return std::nullopt; }
  // Returns true if the result of Apply depends on UpdateStep::number.
  virtual bool uses_number() const { return false; }
  // Computes the values that are the same for all tiles of the step. Without this call Apply
  // returns the same result but takes longer.
  virtual void Prepare(UpdateStep& step) const {}
  // Writes the tile's next weights and slots. Returns false if one of these values is not finite. A
  // gradient that is not finite always gives false, because no rule turns it into a finite weight.
  virtual bool Apply(const UpdateStep& step, const UpdateTile& tile) const = 0;
  // Returns the same step as numbers, for devices that cannot call Apply (common/update/formula.h).
  // The kind is kNone if the rule has no formula.
  virtual UpdateFormula formula(const UpdateStep& step) const;
};

// Returns the rule that `update` names. Each rule is one file, and only make.cc lists them all.
// Returns INVALID_ARGUMENT if this build does not know the rule.
absl::StatusOr<std::unique_ptr<UpdateRule>> MakeUpdateRule(const v1::Update& update);

// Returns the rule for values that are averaged, not trained (common/update/averaging.h): x +=
// gradient. `gradient` is the sum of the moves of all contributions, formed by
// common/update/apply.h. The rule has no slots and ignores the learning rate.
std::unique_ptr<UpdateRule> MakeAverageRule();
// Returns the rule for averaged values that a contribution moves all the way: x = gradient, where
// `gradient` holds the contribution's values. Adding a difference instead would lose digits of
// values that are small compared to x.
std::unique_ptr<UpdateRule> MakeReplaceRule();

// Returns the rule of the elastic centre (EASGD, Zhang, Choromanska, LeCun 2015, equations 5 and
// 6): centre += alpha * gradient. A contribution is the worker's x. `gradient` is the sum over
// contributions of (x_i - weights_in), formed by common/update/apply.h. The rule has no slots and
// ignores the learning rate.
std::unique_ptr<UpdateRule> MakeElasticRule(double alpha);

// Returns the rule of a job's servers, which is the elastic rule or the job's `update`. The rule
// also keeps the moving average of the weights and the count of steps by element, if the update
// asks for them.
absl::StatusOr<std::unique_ptr<UpdateRule>> MakeServerRule(const v1::TrainingJob& job);

}  // namespace leeway
