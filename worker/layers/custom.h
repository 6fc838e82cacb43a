// Makes a layer of a plugin (plugin/leeway/plugin.h), which computes on the CPU.
#pragma once

#include "common/plugins/plugins.h"
#include "worker/layers/registry.h"

namespace leeway {

// Like MakeLayer. Errors are at the key within `custom` (common/job_key.h).
LayerOr MakeCustomLayer(const v1::Custom& custom, const ImageShape& input, const Plugins& plugins);

}  // namespace leeway
