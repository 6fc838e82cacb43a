// Depthwise convolution. A thread of the forward pass computes one output. A thread of the backward
// pass computes the gradient of one input, or a part of the sum for one weight. So no thread adds
// to what another thread writes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "common/host_device.h"
#include "worker/device/cuda/kernels/patches.h"

namespace leeway::cuda {

// Computes one element of y.
struct DepthwiseOutput {
  PatchShape shape;
  const float* x;
  const float* weight;
  // The bias. If null, 0 is used.
  const float* bias;
  float* y;

  LEEWAY_HOST_DEVICE void operator()(size_t i) const {
    const size_t channel = i % shape.channels;
    const size_t line = i / shape.channels;
    const size_t example = line / shape.pixels();
    const auto pixel = static_cast<uint32_t>(line - example * shape.pixels());
    // The row of a pixel in the padding before the image wraps around to a large number, so it is
    // outside the image, too.
    const uint32_t row = pixel / shape.out_width * shape.stride - shape.padding;
    const uint32_t column = pixel % shape.out_width * shape.stride - shape.padding;
    const float* const image = x + example * shape.elements() + channel;
    float sum = bias == nullptr ? 0.0f : bias[channel];
    for (uint32_t r = 0; r < shape.kernel; ++r) {
      if (row + r >= shape.height) continue;
      for (uint32_t c = 0; c < shape.kernel; ++c) {
        if (column + c >= shape.width) continue;
        const size_t at = (size_t{row + r} * shape.width + (column + c)) * shape.channels;
        const size_t tap = size_t{r} * shape.kernel + c;
        sum += image[at] * weight[tap * shape.channels + channel];
      }
    }
    y[i] = sum;
  }
};

// Computes one element of dx.
struct DepthwiseData {
  PatchShape shape;
  const float* weight;
  const float* dy;
  float* dx;

  LEEWAY_HOST_DEVICE void operator()(size_t i) const {
    const size_t example = i / shape.elements();
    const auto place = static_cast<uint32_t>(i - example * shape.elements());
    const uint32_t channel = place % shape.channels;
    const uint32_t column = place / shape.channels % shape.width;
    const uint32_t row = place / shape.channels / shape.width;
    float sum = 0;
    for (uint32_t r = 0; r < shape.kernel; ++r) {
      const uint32_t out_row = shape.Window(row, r, shape.out_height);
      if (out_row >= shape.out_height) continue;
      for (uint32_t c = 0; c < shape.kernel; ++c) {
        const uint32_t out_column = shape.Window(column, c, shape.out_width);
        if (out_column >= shape.out_width) continue;
        const size_t line =
            example * shape.pixels() + size_t{out_row} * shape.out_width + out_column;
        const size_t tap = size_t{r} * shape.kernel + c;
        sum += dy[line * shape.channels + channel] * weight[tap * shape.channels + channel];
      }
    }
    dx[i] = sum;
  }
};

// A term of the sum that is a weight's gradient (columns.h). The rows are the output pixels of all
// examples, and the columns are the weights.
struct DepthwiseTerm {
  PatchShape shape;
  const float* x;
  const float* dy;

  LEEWAY_HOST_DEVICE float operator()(size_t line, size_t weight) const {
    const size_t channel = weight % shape.channels;
    const auto tap = static_cast<uint32_t>(weight / shape.channels);
    const size_t example = line / shape.pixels();
    const auto pixel = static_cast<uint32_t>(line - example * shape.pixels());
    const uint32_t row =
        pixel / shape.out_width * shape.stride + tap / shape.kernel - shape.padding;
    const uint32_t column =
        pixel % shape.out_width * shape.stride + tap % shape.kernel - shape.padding;
    if (row >= shape.height || column >= shape.width) return 0.0f;
    const size_t at = (size_t{row} * shape.width + column) * shape.channels + channel;
    return x[example * shape.elements() + at] * dy[line * shape.channels + channel];
  }
};

}  // namespace leeway::cuda
