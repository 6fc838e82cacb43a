// Filters between the layout of weights, [patch x filters], and that of cuDNN, [filters x patch].
#pragma once

#include <cstddef>

#include "common/host_device.h"

namespace leeway::cuda {

// By element of out [columns x rows].
struct Transpose {
  size_t rows;
  size_t columns;
  const float* in;
  float* out;
  LEEWAY_HOST_DEVICE void operator()(size_t i) const { out[i] = in[i % rows * columns + i / rows]; }
};

}  // namespace leeway::cuda
