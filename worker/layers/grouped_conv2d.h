// Convolutions whose channels are divided into groups.
#pragma once

#include "leeway/v1/job.pb.h"
#include "worker/compute/shapes.h"
#include "worker/layers/registry.h"

namespace leeway {

// Makes a convolution of more than one group. The number of groups must divide the channels and the
// filters. `shape` is the shape of all groups together.
LayerOr MakeGroupedConv2d(const v1::Conv2d& config, const Conv2dShape& shape);

}  // namespace leeway
