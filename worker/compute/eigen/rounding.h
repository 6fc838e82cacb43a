// Rounds the factors of the CPU's products.
#pragma once

#include <cstddef>

#include "worker/compute/precision.h"

namespace leeway {

// Sets y[i] to the rounded x[i]. y may be x.
void RoundAll(Precision precision, size_t count, const float* x, float* y);

}  // namespace leeway
