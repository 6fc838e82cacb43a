// A layer that shares another layer's weight, so MakeLayer cannot make it alone.
#pragma once

#include "worker/layers/registry.h"

namespace leeway {

// Makes a layer that computes scores with the weight [units x channels] of `embedding`: y = x W^T
// at each pixel of `input`. Its tensors are the embedding's, and Pass has those. INVALID_ARGUMENT
// if the numbers of channels differ.
LayerOr MakeTiedDense(const Layer& embedding, const ImageShape& input);

}  // namespace leeway
