// Counts the updates of each element for any rule (job.proto, Update.steps_by_element), so that a
// contribution may skip a part of a block (RatePart.skip). The rule's step number is then the
// element's count, as in PyTorch, which counts the steps of each parameter. The count is a float32,
// also as in PyTorch. It stops at 2^24, where a bias correction has long been 1.
#include <algorithm>
#include <utility>

#include "common/update/rules.h"
#include "common/update/tile_writer.h"

namespace leeway {
namespace {

class StepsByElement : public UpdateRule {
 public:
  explicit StepsByElement(std::unique_ptr<UpdateRule> rule)
      : rule_(std::move(rule)), slot_(rule_->slots().size()) {}

  std::vector<std::string_view> slots() const override {
    std::vector<std::string_view> slots = rule_->slots();
    slots.push_back(kStepsSlot);
    return slots;
  }
  float slot_start(size_t slot) const override {
    return slot == slot_ ? 0 : rule_->slot_start(slot);
  }
  std::optional<size_t> average_slot() const override { return rule_->average_slot(); }
  std::optional<size_t> steps_slot() const override { return slot_; }

  void Prepare(UpdateStep& step) const override { rule_->Prepare(step); }

  // Passes neighbours with the same number of updates to the rule as one tile. The rule's own slots
  // come first.
  bool Apply(const UpdateStep& given, const UpdateTile& tile) const override {
    const float* steps = tile.slots_in[slot_];
    float* steps_out = tile.slots_out[slot_];
    UpdateStep step = given;
    bool finite = true;
    for (size_t begin = 0, end; begin < tile.count; begin = end) {
      const float before = steps[begin];
      end = static_cast<size_t>(
          std::find_if(steps + begin, steps + tile.count, [&](float s) { return s != before; }) -
          steps);
      if (const auto number = static_cast<uint64_t>(before) + 1; number != step.number) {
        step.number = number;
        rule_->Prepare(step);
      }
      finite &= ApplyRun(step, tile, begin, end - begin);
      std::fill(steps_out + begin, steps_out + end, before + 1);
    }
    return finite;
  }

 private:
  bool ApplyRun(const UpdateStep& step, const UpdateTile& tile, size_t begin, size_t count) const {
    const float* slots_in[TileWriter::kMaxSlots];
    float* slots_out[TileWriter::kMaxSlots];
    for (size_t slot = 0; slot < slot_; ++slot) {
      slots_in[slot] = tile.slots_in[slot] + begin;
      slots_out[slot] = tile.slots_out[slot] + begin;
    }
    return rule_->Apply(step, {.count = count,
                               .weights_in = tile.weights_in + begin,
                               .weights_out = tile.weights_out + begin,
                               .gradient = tile.gradient + begin,
                               .slots_in = slots_in,
                               .slots_out = slots_out});
  }

  const std::unique_ptr<UpdateRule> rule_;
  // The slot of the counts, after the rule's own slots.
  const size_t slot_;
};

}  // namespace

std::unique_ptr<UpdateRule> MakeStepsByElementRule(std::unique_ptr<UpdateRule> rule) {
  return std::make_unique<StepsByElement>(std::move(rule));
}

}  // namespace leeway
