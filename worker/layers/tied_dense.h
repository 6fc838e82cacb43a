// A layer that shares another layer's weight, so MakeLayer cannot make it alone.
#pragma once

#include "worker/layers/registry.h"

namespace leeway {

// Makes a layer that computes scores with the weight [units x channels] of `embedding`: y = x W^T
// at each pixel of `input`. The layer has no tensors of its own; Pass has the embedding's tensors.
// Returns INVALID_ARGUMENT if the numbers of channels differ.
LayerOr MakeTiedDense(const Layer& embedding, const ImageShape& input);

}  // namespace leeway
