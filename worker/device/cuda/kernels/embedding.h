// Bodies of kernels that look up rows of a table by row number.
#pragma once

#include <cstddef>

#include "common/host_device.h"

namespace leeway::cuda {

struct TableRows {
  size_t width;
  const float* tokens;
  const float* weight;
  float* y;
  LEEWAY_HOST_DEVICE void operator()(size_t i) const {
    const auto row = static_cast<size_t>(tokens[i / width]);
    y[i] = weight[row * width + i % width];
  }
};

// Computes a column of the table's gradient. Rows are summed in the order of the tokens, so no
// atomics are needed.
struct TableSlope {
  size_t count;
  size_t width;
  const float* tokens;
  const float* dy;
  float* dweight;
  LEEWAY_HOST_DEVICE void operator()(size_t column) const {
    for (size_t i = 0; i < count; ++i) {
      dweight[static_cast<size_t>(tokens[i]) * width + column] += dy[i * width + column];
    }
  }
};

}  // namespace leeway::cuda
