// Makes a layer that a plugin defines (plugin/leeway/plugin.h). The layer computes on the CPU.
#pragma once

#include "common/plugins/plugins.h"
#include "worker/layers/registry.h"

namespace leeway {

// Does the same as MakeLayer for a plugin's layer. Errors are at the key within `custom`
// (common/job_key.h).
LayerOr MakeCustomLayer(const v1::Custom& custom, const ImageShape& input, const Plugins& plugins);

}  // namespace leeway
