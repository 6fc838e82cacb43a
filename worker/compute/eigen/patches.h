// Patches: the values under a convolution's kernel at each output pixel, as rows of a matrix.
#pragma once

#include <cstddef>

#include "worker/compute/shapes.h"

namespace leeway {

// Lines are the rows of output pixels of all examples: line i is row i % height of example i /
// height. A line has shape.output().width patches of shape.patch() values in (row, column, channel)
// order. Values outside the image are 0.

// Sets patches [(end - begin) * width x patch] to the patches of the lines [begin, end) of x.
void GatherPatches(const Conv2dShape& shape, const float* x, size_t begin, size_t end,
                   float* patches);

// The reverse: adds every patch to the pixels that it was taken from.
void ScatterPatches(const Conv2dShape& shape, const float* patches, size_t begin, size_t end,
                    float* dx);

}  // namespace leeway
