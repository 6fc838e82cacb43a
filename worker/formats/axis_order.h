// Converts tensors between the model and a file in which their axes have another order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace leeway {

struct AxisOrder {
  // The sides of the tensor in the model, row-major. An axis over the features of a flattened image
  // is split into height, width and channels.
  std::vector<uint64_t> sides;
  // The file's axis k is the model's axis order[k].
  std::vector<size_t> order;

  // Returns an order that moves no element.
  static AxisOrder AsIs(std::vector<uint64_t> sides);

  uint64_t elements() const;
  // Returns the sides of the tensor in the file, without merging any axes.
  std::vector<uint64_t> file_sides() const;
};

// These functions copy a tensor between the orders of model and file. Both spans have
// axes.elements() floats.
void ToFile(const AxisOrder& axes, std::span<const float> model, std::span<float> file);
void FromFile(const AxisOrder& axes, std::span<const float> file, std::span<float> model);

}  // namespace leeway
