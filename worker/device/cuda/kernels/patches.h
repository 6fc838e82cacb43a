// Patches: the values under a convolution's kernel at each output pixel, as rows of a matrix.
#pragma once

#include <cstddef>
#include <cstdint>

#include "common/host_device.h"
#include "worker/compute/shapes.h"

namespace leeway::cuda {

// The shape of a convolution, as the numbers that kernels need.
struct PatchShape {
  static PatchShape Of(const Conv2dShape& shape) {
    const ImageShape out = shape.output();
    return {shape.input.height, shape.input.width, shape.input.channels, out.height,   out.width,
            shape.kernel,       shape.stride,      shape.padding,        shape.patch()};
  }
  LEEWAY_HOST_DEVICE size_t elements() const { return size_t{height} * width * channels; }
  LEEWAY_HOST_DEVICE size_t pixels() const { return size_t{out_height} * out_width; }
  // Returns the output row or column whose window has the input `at` at position `tap`. Returns
  // `count` or more if there is no such window.
  LEEWAY_HOST_DEVICE uint32_t Window(uint32_t at, uint32_t tap, uint32_t count) const {
    const uint32_t begin = at + padding - tap;
    if (at + padding < tap || begin % stride != 0) return count;
    return begin / stride;
  }

  uint32_t height;
  uint32_t width;
  uint32_t channels;
  uint32_t out_height;
  uint32_t out_width;
  uint32_t kernel;
  uint32_t stride;
  uint32_t padding;
  size_t patch;
};

// Writes one element of the patches [examples * pixels x patch], in (row, column, channel) order.
// Elements outside the image are 0.
struct GatherPatches {
  PatchShape shape;
  const float* x;
  float* patches;

  LEEWAY_HOST_DEVICE void operator()(size_t i) const {
    const size_t line = i / shape.patch;
    const auto place = static_cast<uint32_t>(i - line * shape.patch);
    const size_t example = line / shape.pixels();
    const auto pixel = static_cast<uint32_t>(line - example * shape.pixels());
    const uint32_t channel = place % shape.channels;
    const uint32_t tap = place / shape.channels;
    // The row of a pixel in the padding before the image wraps around to a large number, so it is
    // outside the image, too.
    const uint32_t row =
        pixel / shape.out_width * shape.stride + tap / shape.kernel - shape.padding;
    const uint32_t column =
        pixel % shape.out_width * shape.stride + tap % shape.kernel - shape.padding;
    const bool inside = row < shape.height && column < shape.width;
    const size_t at = (size_t{row} * shape.width + column) * shape.channels + channel;
    patches[i] = inside ? x[example * shape.elements() + at] : 0.0f;
  }
};

// Reverses GatherPatches. Sets each element of dx to the sum of all elements of the patches to
// which GatherPatches has copied that pixel.
struct CollectPatches {
  PatchShape shape;
  const float* patches;
  float* dx;

  LEEWAY_HOST_DEVICE void operator()(size_t i) const {
    const size_t example = i / shape.elements();
    const auto place = static_cast<uint32_t>(i - example * shape.elements());
    const uint32_t channel = place % shape.channels;
    const uint32_t column = place / shape.channels % shape.width;
    const uint32_t row = place / shape.channels / shape.width;
    const size_t first_line = example * shape.pixels();
    float sum = 0;
    for (uint32_t tap_row = 0; tap_row < shape.kernel; ++tap_row) {
      const uint32_t out_row = shape.Window(row, tap_row, shape.out_height);
      if (out_row >= shape.out_height) continue;
      for (uint32_t tap_column = 0; tap_column < shape.kernel; ++tap_column) {
        const uint32_t out_column = shape.Window(column, tap_column, shape.out_width);
        if (out_column >= shape.out_width) continue;
        const size_t line = first_line + size_t{out_row} * shape.out_width + out_column;
        const uint32_t tap = tap_row * shape.kernel + tap_column;
        sum += patches[line * shape.patch + size_t{tap} * shape.channels + channel];
      }
    }
    dx[i] = sum;
  }
};

}  // namespace leeway::cuda
