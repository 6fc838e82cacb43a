// Tensors whose axes a file has in another order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace leeway {

struct AxisOrder {
  // Of the tensor in the model, row-major. An axis over the features of a flattened image is taken
  // apart into height, width and channels.
  std::vector<uint64_t> sides;
  // The file's axis k is the model's axis order[k].
  std::vector<size_t> order;

  // Nothing moves.
  static AxisOrder AsIs(std::vector<uint64_t> sides);

  uint64_t elements() const;
  // In the file, nothing merged.
  std::vector<uint64_t> file_sides() const;
};

// Both spans have axes.elements() floats.
void ToFile(const AxisOrder& axes, std::span<const float> model, std::span<float> file);
void FromFile(const AxisOrder& axes, std::span<const float> file, std::span<float> model);

}  // namespace leeway
