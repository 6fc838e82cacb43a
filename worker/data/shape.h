// The shape of one example.
#pragma once

#include <cstddef>
#include <cstdint>

namespace leeway {

// The sides of an image, in the order height x width x channels (NHWC). A row of n features has the
// shape {1, 1, n}.
struct ImageShape {
  uint32_t height = 1;
  uint32_t width = 1;
  uint32_t channels = 1;

  size_t elements() const { return size_t{height} * width * channels; }
  bool flat() const { return height == 1 && width == 1; }
  friend bool operator==(const ImageShape&, const ImageShape&) = default;
};

}  // namespace leeway
