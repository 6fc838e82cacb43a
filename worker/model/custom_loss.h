// A loss of a plugin (plugin/leeway/plugin.h), which computes on the CPU.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "common/plugins/plugins.h"
#include "worker/model/loss.h"

namespace leeway {

// Errors are at the key within `custom` (common/job_key.h).
absl::StatusOr<std::unique_ptr<Loss>> MakeCustomLoss(const v1::Custom& custom,
                                                     const Plugins& plugins);

}  // namespace leeway
