// The rules of a job whose update rules may be of plugins. MakeServerRule (common/update/rule.h)
// gives the servers'.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "common/plugins/plugins.h"
#include "common/update/rule.h"

namespace leeway {

// As MakeUpdateRule of rule.h, where `custom` is one of `plugins`. Errors of a plugin's are at the
// key within `update` (common/job_key.h).
absl::StatusOr<std::unique_ptr<UpdateRule>> MakeUpdateRule(const v1::Update& update,
                                                           const Plugins& plugins);

// The rule of the workers' own steps, of a delta or elastic exchange; null for a job whose workers
// take none. Errors of a plugin's are at their key, as MakeServerRule's are.
absl::StatusOr<std::unique_ptr<UpdateRule>> MakeLocalRule(const v1::TrainingJob& job);

}  // namespace leeway
