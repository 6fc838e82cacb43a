// A loss that a plugin defines (plugin/leeway/plugin.h). It computes on the CPU.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "common/plugins/plugins.h"
#include "worker/model/loss.h"

namespace leeway {

// Makes the plugin's loss. Errors are at the key within `custom` (common/job_key.h).
absl::StatusOr<std::unique_ptr<Loss>> MakeCustomLoss(const v1::Custom& custom,
                                                     const Plugins& plugins);

}  // namespace leeway
