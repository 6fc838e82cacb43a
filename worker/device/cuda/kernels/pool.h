// Pooling. A thread of the forward pass computes one output. A thread of the backward pass computes
// the gradient of one input from all windows that contain it. So no thread adds to what another
// thread writes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "common/host_device.h"
#include "worker/compute/shapes.h"

namespace leeway::cuda {

// The shape of a pooling, as the numbers that kernels need.
struct WindowShape {
  static WindowShape Of(const PoolShape& shape) {
    const ImageShape out = shape.output();
    return {shape.input.height, shape.input.width, shape.input.channels, out.height,   out.width,
            shape.size,         shape.columns(),   shape.stride,         shape.padding};
  }
  // Returns true if `at` is within [0, side). A negative value has wrapped around to a large
  // number, so it is outside, too.
  LEEWAY_HOST_DEVICE static bool Inside(uint32_t at, uint32_t side) { return at < side; }

  uint32_t height;
  uint32_t width;
  uint32_t channels;
  uint32_t out_height;
  uint32_t out_width;
  uint32_t rows;
  uint32_t columns;
  uint32_t stride;
  uint32_t padding;
};

// Calls visit(value, position) for each input of output i's window.
template <typename Visit>
LEEWAY_HOST_DEVICE void ForWindow(const WindowShape& shape, const float* x, size_t i,
                                  Visit&& visit) {
  const size_t channel = i % shape.channels;
  const size_t pixel = i / shape.channels;
  const size_t line = pixel / shape.out_width;
  const auto column = static_cast<uint32_t>(pixel % shape.out_width) * shape.stride - shape.padding;
  const auto row = static_cast<uint32_t>(line % shape.out_height) * shape.stride - shape.padding;
  const float* const image =
      x + line / shape.out_height * shape.height * shape.width * shape.channels + channel;
  for (uint32_t r = 0; r < shape.rows; ++r) {
    if (!WindowShape::Inside(row + r, shape.height)) continue;
    for (uint32_t c = 0; c < shape.columns; ++c) {
      if (!WindowShape::Inside(column + c, shape.width)) continue;
      const size_t at = (size_t{row + r} * shape.width + (column + c)) * shape.channels;
      visit(image[at], r * shape.columns + c);
    }
  }
}

// The highest of the values visited, and its position.
struct Highest {
  float best = 0;
  uint32_t winner = 0;
  bool any = false;
  LEEWAY_HOST_DEVICE void operator()(float value, uint32_t place) {
    // A NaN wins and stays.
    if (any && (value <= best || best != best)) return;
    best = value;
    winner = place;
    any = true;
  }
};

struct MaxPool {
  WindowShape shape;
  const float* x;
  // The positions of the maxima. Null if they are not needed.
  float* winners;
  float* y;

  LEEWAY_HOST_DEVICE void operator()(size_t i) const {
    Highest highest;
    ForWindow(shape, x, i, highest);
    y[i] = highest.best;
    if (winners != nullptr) winners[i] = static_cast<float>(highest.winner);
  }
};

struct Total {
  float sum = 0;
  LEEWAY_HOST_DEVICE void operator()(float value, uint32_t) { sum += value; }
};

struct AvgPool {
  WindowShape shape;
  float share;
  const float* x;
  float* y;

  LEEWAY_HOST_DEVICE void operator()(size_t i) const {
    Total total;
    ForWindow(shape, x, i, total);
    y[i] = total.sum * share;
  }
};

// Sets dx[i] to the sum of slope(output, position in the output's window) over the windows that
// contain input i.
template <typename Slope>
struct PoolSlopes {
  WindowShape shape;
  Slope slope;
  float* dx;

  // Begin returns the first window that reaches `at`, counted from the border. End returns the
  // index after the last such window.
  LEEWAY_HOST_DEVICE uint32_t Begin(uint32_t at, uint32_t window) const {
    return at < window ? 0 : (at - window) / shape.stride + 1;
  }
  LEEWAY_HOST_DEVICE uint32_t End(uint32_t at, uint32_t count) const {
    const uint32_t end = at / shape.stride + 1;
    return end < count ? end : count;
  }

  LEEWAY_HOST_DEVICE void operator()(size_t i) const {
    const size_t channel = i % shape.channels;
    const size_t pixel = i / shape.channels;
    const auto column = static_cast<uint32_t>(pixel % shape.width) + shape.padding;
    const auto row = static_cast<uint32_t>(pixel / shape.width % shape.height) + shape.padding;
    const size_t example = pixel / shape.width / shape.height;
    float sum = 0;
    for (uint32_t r = Begin(row, shape.rows); r < End(row, shape.out_height); ++r) {
      for (uint32_t c = Begin(column, shape.columns); c < End(column, shape.out_width); ++c) {
        const size_t line = (example * shape.out_height + r) * shape.out_width + c;
        const uint32_t place = (row - r * shape.stride) * shape.columns + column - c * shape.stride;
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
