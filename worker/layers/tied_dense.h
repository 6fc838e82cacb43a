// A layer whose weight is another's, and so is not made by MakeLayer alone.
#pragma once

#include "worker/layers/registry.h"

namespace leeway {

// Scores by the weight [units x channels] of `embedding`: y = x W^T at each pixel of `input`. Its
// tensors are the embedding's: Pass has those of it. INVALID_ARGUMENT if the channels are others.
LayerOr MakeTiedDense(const Layer& embedding, const ImageShape& input);

}  // namespace leeway
