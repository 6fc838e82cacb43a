// Bodies of kernels for attention: softmax of the attention weights' rows, and rotation by
// position.
#pragma once

#include <cmath>
#include <cstddef>

#include "common/host_device.h"

namespace leeway::cuda {

// Applies the softmax in place to row i of all heads' weights. Sets the weights of positions that
// are not seen to 0.
struct SoftmaxRow {
  size_t positions;
  bool causal;
  float scale;
  float* p;
  LEEWAY_HOST_DEVICE void operator()(size_t i) const {
    float* const row = p + i * positions;
    const size_t seen = causal ? i % positions + 1 : positions;
    float top = row[0];
    for (size_t j = 1; j < seen; ++j) top = top < row[j] ? row[j] : top;
    double total = 0;
    for (size_t j = 0; j < seen; ++j) {
      row[j] = expf(scale * (row[j] - top));
      total += row[j];
    }
    const auto share = static_cast<float>(1 / total);
    for (size_t j = 0; j < seen; ++j) row[j] *= share;
    for (size_t j = seen; j < positions; ++j) row[j] = 0;
  }
};

// Replaces the gradient of the attention weights by the gradient of the scores.
struct SoftmaxRowSlope {
  size_t positions;
  bool causal;
  float scale;
  const float* p;
  float* dp;
  LEEWAY_HOST_DEVICE void operator()(size_t i) const {
    const float* const weights = p + i * positions;
    float* const slopes = dp + i * positions;
    const size_t seen = causal ? i % positions + 1 : positions;
    double along = 0;
    for (size_t j = 0; j < seen; ++j) along += static_cast<double>(slopes[j]) * weights[j];
    const auto mean = static_cast<float>(along);
    for (size_t j = 0; j < seen; ++j) slopes[j] = weights[j] * (slopes[j] - mean) * scale;
    for (size_t j = seen; j < positions; ++j) slopes[j] = 0;
  }
};

// Rotates one pair of channels of a query or a key.
struct PairTurn {
  size_t positions;
  // How many query and key vectors a position has.
  size_t vectors;
  size_t width;
  size_t stride;
  bool back;
  float* qkv;
  LEEWAY_HOST_DEVICE void operator()(size_t i) const {
    const size_t half = width / 2;
    const size_t pair = i % half;
    const size_t vector = i / half % vectors;
    const size_t row = i / half / vectors;
    const double angle =
        static_cast<double>(row % positions) *
        pow(10000.0, -2.0 * static_cast<double>(pair) / static_cast<double>(width));
    const auto cosine = static_cast<float>(cos(angle));
    const auto sine = static_cast<float>(back ? -sin(angle) : sin(angle));
    float* const x = qkv + row * stride + vector * width + pair;
    const float a = x[0];
    const float b = x[half];
    x[0] = a * cosine - b * sine;
    x[half] = b * cosine + a * sine;
  }
};

}  // namespace leeway::cuda
