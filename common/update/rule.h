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

// One tile of one update. `out` may equal `in`; otherwise they do not overlap. So one pass can read
// an immutable version and write the next one.
struct UpdateTile {
  size_t count = 0;
  const float* weights_in = nullptr;
  float* weights_out = nullptr;
  // The gradient, or for a delta exchange what the weights lost (x_start - x_end). Both have the
  // same sign.
  const float* gradient = nullptr;
  // By slot index.
  const float* const* slots_in = nullptr;
  float* const* slots_out = nullptr;
};

// Elements from the end of the part before up to `end`, and what learning rate and weight decay are
// multiplied by there (common/update/factors.h).
struct UpdatePart {
  size_t end = 0;
  double rate = 1;
  double decay = 1;
  // The step does not concern them: weights and slots stay as they are.
  bool skip = false;
};

// What a contribution says of its update, in parts of all trained elements: what the learning rate
// is multiplied by, and what it does not update. Null: it updates all of them, with the rate as it
// is.
using ContributionRates = std::shared_ptr<const std::vector<UpdatePart>>;

// What is the same for all tiles of an update, or of one part of it.
struct UpdateStep {
  // Already multiplied by the schedule's factor, and divided as `share` says.
  float learning_rate = 0;
  // Updates applied before this one, plus 1: Adam's t. Those of the block, but for a rule that
  // counts them by element (MakeStepsByElementRule).
  uint64_t number = 1;
  // Adam's bias corrections, 1 - beta^t; 0 if not yet computed.
  double correction1 = 0;
  double correction2 = 0;
  // What the rule's weight decay is multiplied by.
  double decay = 1;
  // The part of a clock that this update is: less than 1 where each contribution is applied alone.
  double share = 1;

  // A rule's weight decay in this step.
  float Decay(double weight_decay) const { return static_cast<float>(weight_decay * decay); }
  // This step as it is in `part`.
  UpdateStep In(const UpdatePart& part) const {
    UpdateStep step = *this;
    step.learning_rate = static_cast<float>(learning_rate * part.rate);
    step.decay = decay * part.decay;
    return step;
  }
};

// What a decay that is apart from the gradient leaves of a weight.
inline float KeptShare(const UpdateStep& step, double weight_decay) {
  return static_cast<float>(1 - step.learning_rate * weight_decay * step.decay);
}

// The names of UpdateRule::average_slot() and steps_slot(), in checkpoints, too.
inline constexpr std::string_view kAverageSlot = "average";
inline constexpr std::string_view kStepsSlot = "steps";

struct UpdateFormula;

// Immutable and thread-safe. Elementwise: the result for an element depends on nothing but that
// element, so blocks and tiles may be cut anywhere (the same bits come out).
class UpdateRule {
 public:
  virtual ~UpdateRule() = default;
  // The names and initial values of the optimizer state that the rule keeps for each element.
  virtual std::vector<std::string_view> slots() const { return {}; }
  virtual float slot_start(size_t slot) const { return 0; }
  // The slot that is a moving average of the weights. It starts as the weights do, and where they
  // are averaged and not trained it is what they are.
  virtual std::optional<size_t> average_slot() const { return std::nullopt; }
  // The slot that counts the updates of each element. UpdateStep::number need not be right then.
  virtual std::optional<size_t> steps_slot() const { return std::nullopt; }
  // Whether Apply goes by UpdateStep::number.
  virtual bool uses_number() const { return false; }
  // Computes what is the same for all tiles of the step. Apply works without it, but takes longer.
  virtual void Prepare(UpdateStep& step) const {}
  // False if some weight or slot that it wrote is not finite. A gradient that is not finite always
  // gives false: no rule makes a finite weight of it.
  virtual bool Apply(const UpdateStep& step, const UpdateTile& tile) const = 0;
  // The same step as numbers, for devices that cannot call Apply (common/update/formula.h). Its
  // kind is kNone where the rule has none.
  virtual UpdateFormula formula(const UpdateStep& step) const;
};

// The rule that `update` names. Each rule is one file; make.cc is the one place that lists them.
// INVALID_ARGUMENT if this build does not know the rule.
absl::StatusOr<std::unique_ptr<UpdateRule>> MakeUpdateRule(const v1::Update& update);

// The rule for values that are averaged, not trained (common/update/averaging.h): x += gradient.
// `gradient` is the sum of the moves of all contributions, formed by common/update/apply.h. No
// slots; ignores the learning rate.
std::unique_ptr<UpdateRule> MakeAverageRule();
// The same if a contribution moves them all the way: x = gradient, which holds its values. A
// difference would lose the digits of values that are small beside x.
std::unique_ptr<UpdateRule> MakeReplaceRule();

// The elastic centre (EASGD, Zhang, Choromanska, LeCun 2015, equations 5 and 6). A contribution is
// the worker's x; `gradient` is sum over contributions of (x_i - weights_in), formed by
// common/update/apply.h: centre += alpha * gradient. No slots; ignores the learning rate.
std::unique_ptr<UpdateRule> MakeElasticRule(double alpha);

// The rule of a job's servers: the elastic rule, or the job's `update`, with the moving average of
// the weights and the count of steps by element where it asks for them.
absl::StatusOr<std::unique_ptr<UpdateRule>> MakeServerRule(const v1::TrainingJob& job);

}  // namespace leeway
