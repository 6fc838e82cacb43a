// Adds a moving average of the weights to any rule (job.proto, WeightAverage):
//   average = decay average + (1 - decay) x        decay^share where an update is part of a clock
// The first update sets the average to its weights, as PyTorch's AveragedModel does.
#include <algorithm>
#include <cmath>
#include <utility>

#include "common/update/loop.h"
#include "common/update/rules.h"
#include "leeway/v1/job.pb.h"

namespace leeway {
namespace {

class WeightAverageRule : public UpdateRule {
 public:
  WeightAverageRule(std::unique_ptr<UpdateRule> rule, const v1::WeightAverage& options)
      : rule_(std::move(rule)), slot_(rule_->slots().size()), decay_(options.decay()) {}

  std::vector<std::string_view> slots() const override {
    std::vector<std::string_view> slots = rule_->slots();
    slots.push_back(kAverageSlot);
    return slots;
  }
  float slot_start(size_t slot) const override { return rule_->slot_start(slot); }
  std::optional<size_t> average_slot() const override { return slot_; }
  bool uses_number() const override { return true; }

  void Prepare(UpdateStep& step) const override { rule_->Prepare(step); }

  // The rule's own slots come first, so the rule can use the same tile.
  bool Apply(const UpdateStep& step, const UpdateTile& tile) const override {
    const float decay = step.number == 1 ? 0 : Decay(step.share), rest = 1 - decay;
    const bool finite = rule_->Apply(step, tile);
    const float *x = tile.weights_out, *average = tile.slots_in[slot_];
    float* average_out = tile.slots_out[slot_];
    LEEWAY_INDEPENDENT_ITERATIONS
    for (size_t i = 0; i < tile.count; ++i) average_out[i] = decay * average[i] + rest * x[i];
    return finite;
  }

 private:
  // Returns the decay for `share` of a clock. So n updates with a share of 1/n each forget as much
  // as one update with the whole clock.
  float Decay(double share) const {
    return static_cast<float>(share == 1 ? decay_ : std::pow(decay_, share));
  }

  const std::unique_ptr<UpdateRule> rule_;
  // The slot of the average, after the rule's own slots.
  const size_t slot_;
  const double decay_;
};

}  // namespace

std::unique_ptr<UpdateRule> MakeWeightAverageRule(std::unique_ptr<UpdateRule> rule,
                                                  const v1::WeightAverage& options) {
  return std::make_unique<WeightAverageRule>(std::move(rule), options);
}

}  // namespace leeway
