// The rules of a job whose update rules may come from plugins. MakeServerRule
// (common/update/rule.h) returns the servers' rule.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "common/plugins/plugins.h"
#include "common/update/rule.h"

namespace leeway {

// Returns the rule as MakeUpdateRule in rule.h does, but `custom` may name a rule from `plugins`.
// Errors in a plugin's rule begin with the key within `update` (common/job_key.h).
absl::StatusOr<std::unique_ptr<UpdateRule>> MakeUpdateRule(const v1::Update& update,
                                                           const Plugins& plugins);

// Returns the rule of the workers' own steps in a delta or elastic exchange, or null if the job's
// workers take no such steps. Errors in a plugin's rule begin with their key, as in MakeServerRule.
absl::StatusOr<std::unique_ptr<UpdateRule>> MakeLocalRule(const v1::TrainingJob& job);

}  // namespace leeway
