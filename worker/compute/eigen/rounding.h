// Factors of the CPU's products, rounded.
#pragma once

#include <cstddef>

#include "worker/compute/precision.h"

namespace leeway {

// y[i] = x[i], rounded; y may be x.
void RoundAll(Precision precision, size_t count, const float* x, float* y);

}  // namespace leeway
