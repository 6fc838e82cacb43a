// A plugin's update rule.
#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/job_key.h"
#include "common/plugins/guarded.h"
#include "common/plugins/registry_check.h"
#include "common/status.h"
#include "common/update/loop.h"
#include "common/update/rules.h"

namespace leeway {
namespace {

void SeeAll(const float* values, size_t count, LargestMagnitude& largest) {
  for (size_t i = 0; i < count; ++i) largest.See(values[i]);
}

class CustomUpdate final : public UpdateRule {
 public:
  CustomUpdate(std::unique_ptr<const plugin::UpdateRule> rule, std::vector<plugin::Slot> slots)
      : rule_(std::move(rule)), slots_(std::move(slots)) {}

  std::vector<std::string_view> slots() const override {
    std::vector<std::string_view> names;
    for (const plugin::Slot& slot : slots_) names.push_back(slot.name);
    return names;
  }
  float slot_start(size_t slot) const override { return slots_[slot].start; }
  // A plugin's rule may use the number.
  bool uses_number() const override { return true; }

  // Also checks the gradient, because a plugin's rule may make a finite weight from a gradient that
  // is not finite.
  bool Apply(const UpdateStep& step, const UpdateTile& tile) const override {
    LargestMagnitude largest;
    SeeAll(tile.gradient, tile.count, largest);
    rule_->Apply({step.learning_rate, step.number, step.decay},
                 {tile.count, tile.weights_in, tile.weights_out, tile.gradient, tile.slots_in,
                  tile.slots_out});
    SeeAll(tile.weights_out, tile.count, largest);
    for (size_t slot = 0; slot < slots_.size(); ++slot) {
      SeeAll(tile.slots_out[slot], tile.count, largest);
    }
    return largest.finite();
  }

 private:
  const std::unique_ptr<const plugin::UpdateRule> rule_;
  const std::vector<plugin::Slot> slots_;
};

// Returns whether checkpoints use this name for something else.
bool IsReserved(std::string_view name) {
  return name == "weights" || name == "shadow" || name == kAverageSlot || name == kStepsSlot;
}

absl::Status CheckSlots(const std::vector<plugin::Slot>& slots) {
  if (slots.size() > plugin::kSlotsMax) {
    return absl::FailedPreconditionError(
        absl::StrCat("has ", slots.size(), " slots; at most ", plugin::kSlotsMax, " are allowed"));
  }
  for (size_t i = 0; i < slots.size(); ++i) {
    const bool fresh = std::none_of(slots.begin(), slots.begin() + static_cast<ptrdiff_t>(i),
                                    [&](const auto& slot) { return slot.name == slots[i].name; });
    if (IsPluginName(slots[i].name) && !IsReserved(slots[i].name) && fresh &&
        std::isfinite(slots[i].start))
      continue;
    return absl::FailedPreconditionError(
        absl::StrCat("slot ", i,
                     " needs a unique name of lower-case letters, digits and '_', and a finite "
                     "start; the names weights, shadow, average and steps are reserved"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<UpdateRule>> Make(const ChosenPlugin<plugin::RuleSpec>& chosen) {
  std::unique_ptr<plugin::UpdateRule> rule;
  std::vector<plugin::Slot> slots;
  RETURN_IF_ERROR(Guarded([&] {
    rule = chosen.spec->make(chosen.options);
    if (rule != nullptr) slots = rule->slots();
  }));
  if (rule == nullptr) return absl::FailedPreconditionError("the plugin's `make` returned no rule");
  RETURN_IF_ERROR(CheckSlots(slots));
  return std::make_unique<CustomUpdate>(std::move(rule), std::move(slots));
}

}  // namespace

absl::StatusOr<std::unique_ptr<UpdateRule>> MakeCustomRule(const v1::CustomRule& custom,
                                                           const Plugins& plugins) {
  ASSIGN_OR_RETURN(const auto chosen, plugins.Rule(custom));
  auto rule = Make(chosen);
  if (rule.ok()) return rule;
  return AtKey(Annotate(rule.status(), absl::StrCat("rule '", custom.rule(), "'")), "rule");
}

}  // namespace leeway
