// The initial values of tensors.
#pragma once

#include <cstdint>
#include <span>

#include "worker/layers/layer.h"

namespace leeway {

// Writes the initial values of tensor `index` of a model. They are a pure function of (seed, index,
// plan).
void InitializeTensor(const TensorPlan& plan, uint64_t seed, uint64_t index,
                      std::span<float> values);

}  // namespace leeway
