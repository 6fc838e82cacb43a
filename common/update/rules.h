// The constructors of the rules, for make.cc. All other code includes common/update/rule.h.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "common/plugins/plugins.h"
#include "common/update/rule.h"

namespace leeway {

namespace v1 {
class Adagrad;
class Adam;
class AdamW;
class CustomRule;
class Lion;
class Sgd;
class WeightAverage;
}  // namespace v1

std::unique_ptr<UpdateRule> MakeSgdRule(const v1::Sgd& options);
std::unique_ptr<UpdateRule> MakeAdagradRule(const v1::Adagrad& options);
std::unique_ptr<UpdateRule> MakeAdamRule(const v1::Adam& options);
std::unique_ptr<UpdateRule> MakeAdamWRule(const v1::AdamW& options);
std::unique_ptr<UpdateRule> MakeLionRule(const v1::Lion& options);
// Returns `rule` with a slot for the moving average of the weights.
std::unique_ptr<UpdateRule> MakeWeightAverageRule(std::unique_ptr<UpdateRule> rule,
                                                  const v1::WeightAverage& options);
// Returns `rule` with a step number for each element.
std::unique_ptr<UpdateRule> MakeStepsByElementRule(std::unique_ptr<UpdateRule> rule);
// Returns a plugin's rule. Errors begin with the key within `custom`.
absl::StatusOr<std::unique_ptr<UpdateRule>> MakeCustomRule(const v1::CustomRule& custom,
                                                           const Plugins& plugins);

}  // namespace leeway
