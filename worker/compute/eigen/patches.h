// Patches: the values under a convolution's kernel at each output pixel, as rows of a matrix.
#pragma once

#include <cstddef>

#include "worker/compute/shapes.h"

namespace leeway {

// A line is one row of output pixels of one example: line i is row i % height of example i /
// height. It has shape.output().width patches of shape.patch() values in (row, column, channel)
// order. Values outside the image are 0.

// Sets patches [(end - begin) * width x patch] to the patches of the lines [begin, end) of x.
void GatherPatches(const Conv2dShape& shape, const float* x, size_t begin, size_t end,
                   float* patches);

// Reverses GatherPatches: adds every value of a patch to the pixel that it was copied from.
void ScatterPatches(const Conv2dShape& shape, const float* patches, size_t begin, size_t end,
                    float* dx);

}  // namespace leeway
