// Pooling. Forward a thread has one output, backward one input: it looks at all windows that hold
// it, so nobody adds to what another thread writes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "common/host_device.h"
#include "worker/compute/shapes.h"

namespace leeway::cuda {

// A pooling's shape in the numbers that kernels want.
struct WindowShape {
  static WindowShape Of(const PoolShape& shape) {
    const ImageShape out = shape.output();
    return {shape.input.height, shape.input.width, shape.input.channels, out.height,
            out.width,          shape.size,        shape.stride};
  }
  // Of output i: its window's first input.
  LEEWAY_HOST_DEVICE size_t First(size_t i) const {
    const size_t channel = i % channels;
    const size_t pixel = i / channels;
    const size_t column = pixel % out_width * stride;
    const size_t line = pixel / out_width;
    const size_t row = line % out_height * stride;
    const size_t example = line / out_height;
    return ((example * height + row) * width + column) * channels + channel;
  }
  // From the window's first input to that in `row` and `column` of it.
  LEEWAY_HOST_DEVICE size_t Offset(uint32_t row, uint32_t column) const {
    return (size_t{row} * width + column) * channels;
  }

  uint32_t height;
  uint32_t width;
  uint32_t channels;
  uint32_t out_height;
  uint32_t out_width;
  uint32_t size;
  uint32_t stride;
};

struct MaxPool {
  WindowShape shape;
  const float* x;
  // Null: not wanted.
  float* winners;
  float* y;

  LEEWAY_HOST_DEVICE void operator()(size_t i) const {
    const float* window = x + shape.First(i);
    float best = window[0];
    uint32_t winner = 0;
    for (uint32_t row = 0; row < shape.size; ++row) {
      for (uint32_t column = 0; column < shape.size; ++column) {
        const float value = window[shape.Offset(row, column)];
        // A NaN wins and stays.
        if (value <= best || best != best) continue;
        best = value;
        winner = row * shape.size + column;
      }
    }
    y[i] = best;
    if (winners != nullptr) winners[i] = static_cast<float>(winner);
  }
};

struct AvgPool {
  WindowShape shape;
  float share;
  const float* x;
  float* y;

  LEEWAY_HOST_DEVICE void operator()(size_t i) const {
    const float* window = x + shape.First(i);
    float sum = 0;
    for (uint32_t row = 0; row < shape.size; ++row) {
      for (uint32_t column = 0; column < shape.size; ++column) {
        sum += window[shape.Offset(row, column)];
      }
    }
    y[i] = sum * share;
  }
};

// dx[i] = the sum of slope(output, place in its window) over the windows that hold input i.
template <typename Slope>
struct PoolSlopes {
  WindowShape shape;
  Slope slope;
  float* dx;

  // The first window that reaches `at`, and the one after the last.
  LEEWAY_HOST_DEVICE uint32_t Begin(uint32_t at) const {
    return at < shape.size ? 0 : (at - shape.size) / shape.stride + 1;
  }
  LEEWAY_HOST_DEVICE uint32_t End(uint32_t at, uint32_t count) const {
    const uint32_t end = at / shape.stride + 1;
    return end < count ? end : count;
  }

  LEEWAY_HOST_DEVICE void operator()(size_t i) const {
    const size_t channel = i % shape.channels;
    const size_t pixel = i / shape.channels;
    const auto column = static_cast<uint32_t>(pixel % shape.width);
    const auto row = static_cast<uint32_t>(pixel / shape.width % shape.height);
    const size_t example = pixel / shape.width / shape.height;
    float sum = 0;
    for (uint32_t r = Begin(row); r < End(row, shape.out_height); ++r) {
      for (uint32_t c = Begin(column); c < End(column, shape.out_width); ++c) {
        const size_t line = (example * shape.out_height + r) * shape.out_width + c;
        const uint32_t place = (row - r * shape.stride) * shape.size + column - c * shape.stride;
        sum += slope(line * shape.channels + channel, place);
      }
    }
    dx[i] = sum;
  }
};

struct MaxSlope {
  const float* winners;
  const float* dy;
  LEEWAY_HOST_DEVICE float operator()(size_t output, uint32_t place) const {
    return winners[output] == static_cast<float>(place) ? dy[output] : 0.0f;
  }
};
struct AvgSlope {
  float share;
  const float* dy;
  LEEWAY_HOST_DEVICE float operator()(size_t output, uint32_t) const { return dy[output] * share; }
};

}  // namespace leeway::cuda
