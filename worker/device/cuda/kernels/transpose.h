// Transposes filters between the layout of weights, [patch x filters], and the layout of cuDNN,
// [filters x patch].
#pragma once

#include <cstddef>

#include "common/host_device.h"

namespace leeway::cuda {

// Writes one element of out [columns x rows].
struct Transpose {
  size_t rows;
  size_t columns;
  const float* in;
  float* out;
  LEEWAY_HOST_DEVICE void operator()(size_t i) const { out[i] = in[i % rows * columns + i / rows]; }
};

}  // namespace leeway::cuda
