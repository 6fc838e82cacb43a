// Convolutions whose channels are in groups.
#pragma once

#include "leeway/v1/job.pb.h"
#include "worker/compute/shapes.h"
#include "worker/layers/registry.h"

namespace leeway {

// Of more than one group, which divides channels and filters. `shape` is that of all groups.
LayerOr MakeGroupedConv2d(const v1::Conv2d& config, const Conv2dShape& shape);

}  // namespace leeway
