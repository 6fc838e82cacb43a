// Shapes of the two-dimensional kernels. Images are NHWC, row-major float32.
#pragma once

#include <cstddef>
#include <cstdint>

#include "worker/data/shape.h"

namespace leeway {

// A square convolution. Valid if kernel <= side + 2 * padding for both sides.
struct Conv2dShape {
  ImageShape input;
  uint32_t filters = 1;
  uint32_t kernel = 1;
  uint32_t stride = 1;
  // Zero pixels on each side.
  uint32_t padding = 0;

  ImageShape output() const { return {Side(input.height), Side(input.width), filters}; }
  // Values under the kernel: rows of the weight matrix [kernel * kernel * channels x filters].
  size_t patch() const { return size_t{kernel} * kernel * input.channels; }

 private:
  uint32_t Side(uint32_t side) const { return (side + 2 * padding - kernel) / stride + 1; }
};

// Square windows inside the image: pixels that fill no window are left out. Valid if size <= both
// sides.
struct PoolShape {
  ImageShape input;
  uint32_t size = 2;
  uint32_t stride = 2;

  ImageShape output() const { return {Side(input.height), Side(input.width), input.channels}; }

 private:
  uint32_t Side(uint32_t side) const { return (side - size) / stride + 1; }
};

}  // namespace leeway
