// Shapes of the two-dimensional kernels. Images are NHWC, row-major float32.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "worker/data/shape.h"

namespace leeway {

// A square convolution. It is valid if kernel <= side + 2 * padding for both sides of the image.
struct Conv2dShape {
  ImageShape input;
  uint32_t filters = 1;
  uint32_t kernel = 1;
  uint32_t stride = 1;
  // The number of zero pixels on each side of the image.
  uint32_t padding = 0;

  ImageShape output() const { return {Side(input.height), Side(input.width), filters}; }
  // Returns the number of values under the kernel, which is the number of rows of the weight matrix
  // [kernel * kernel * channels x filters].
  size_t patch() const { return size_t{kernel} * kernel * input.channels; }

 private:
  uint32_t Side(uint32_t side) const { return (side + 2 * padding - kernel) / stride + 1; }
};

// The windows of a pooling over an image and its border. Pixels that do not fill a window are left
// out. The shape is valid if the window is not larger than the image with its border, and the
// border is at most half a window.
struct PoolShape {
  ImageShape input;
  // The number of rows of a window.
  uint32_t size = 2;
  uint32_t stride = 2;
  // The number of columns of a window. 0 stands for the number of rows.
  uint32_t width = 0;
  // The width of the border on each side, in pixels. Pixels of the border never win a maximum. Must
  // be 0 for mean pooling.
  uint32_t padding = 0;

  uint32_t columns() const { return width == 0 ? size : width; }
  // Returns the number of pixels of a window.
  size_t area() const { return size_t{size} * columns(); }
  ImageShape output() const {
    return {Side(input.height, size), Side(input.width, columns()), input.channels};
  }

 private:
  uint32_t Side(uint32_t side, uint32_t window) const {
    return (side + 2 * padding - window) / stride + 1;
  }
};

// A copy of some columns of a matrix to columns of another matrix. It has the number of rows and
// columns, and the distance between the rows of each matrix, in floats.
struct ColumnCopy {
  size_t rows = 0;
  size_t columns = 0;
  size_t from_stride = 0;
  size_t to_stride = 0;
};

// Normalisation within each example. Each of the `groups` groups of channels has its own mean and
// variance.
struct GroupNormShape {
  size_t batch = 0;
  size_t pixels = 1;
  size_t channels = 0;
  // The number of groups. It must divide the number of channels.
  size_t groups = 1;
  float epsilon = 0;

  size_t group_channels() const { return channels / groups; }
  size_t means() const { return batch * groups; }
  // Returns the number of values that each mean covers.
  size_t values() const { return pixels * group_channels(); }
};

// A look-up of rows of a table [vocabulary x width] by row number.
struct EmbedShape {
  // The number of rows that are looked up.
  size_t count = 0;
  size_t vocabulary = 0;
  size_t width = 0;
};

// Multi-head self-attention. Each example has qkv [positions x 3 channels]. A row has its
// position's queries, then keys, then values. Each of these three parts has the heads one after the
// other.
struct AttentionShape {
  size_t positions = 0;
  size_t heads = 1;
  // The number of channels of one head.
  size_t width = 0;
  // True if each position sees only itself and earlier positions.
  bool causal = true;

  size_t channels() const { return heads * width; }
  size_t qkv() const { return 3 * channels(); }
  // Returns the number of attention weights of one example: a square matrix for each head.
  size_t weights() const { return heads * positions * positions; }
  // Returns the number of positions that a position sees.
  size_t seen(size_t position) const { return causal ? position + 1 : positions; }
};

// Returns the angle by which a pair of channels of a head is rotated at a position, in radians: Su
// et al. 2021 (arXiv:2104.09864), equation 15.
inline double RotaryAngle(size_t position, size_t pair, size_t width) {
  return static_cast<double>(position) *
         std::pow(10000.0, -2.0 * static_cast<double>(pair) / static_cast<double>(width));
}

struct SoftmaxLossShape {
  size_t rows = 0;
  size_t classes = 0;
  // The share of each label's target that is spread over all classes.
  float smoothing = 0;
};

}  // namespace leeway
