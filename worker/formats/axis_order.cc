#include "worker/formats/axis_order.h"

#include <numeric>
#include <utility>

namespace leeway {
namespace {

// Calls move(index in the file, index in the model) for each element, in the order of the file.
template <typename Move>
void ForEachElement(const AxisOrder& axes, Move move) {
  const size_t rank = axes.sides.size();
  std::vector<uint64_t> strides(rank, 1);
  for (size_t k = rank; k-- > 1;) strides[k - 1] = strides[k] * axes.sides[k];
  const std::vector<uint64_t> sides = axes.file_sides();
  std::vector<uint64_t> at(rank, 0);
  uint64_t model = 0;
  const uint64_t elements = axes.elements();
  for (uint64_t file = 0; file < elements; ++file) {
    move(file, model);
    for (size_t k = rank; k-- > 0;) {
      const uint64_t stride = strides[axes.order[k]];
      model += stride;
      if (++at[k] < sides[k]) break;
      model -= stride * sides[k];
      at[k] = 0;
    }
  }
}

}  // namespace

AxisOrder AxisOrder::AsIs(std::vector<uint64_t> sides) {
  AxisOrder axes{.sides = std::move(sides), .order = {}};
  axes.order.resize(axes.sides.size());
  std::iota(axes.order.begin(), axes.order.end(), size_t{0});
  return axes;
}

uint64_t AxisOrder::elements() const {
  uint64_t elements = 1;
  for (const uint64_t side : sides) elements *= side;
  return elements;
}

std::vector<uint64_t> AxisOrder::file_sides() const {
  std::vector<uint64_t> in_file;
  for (const size_t axis : order) in_file.push_back(sides[axis]);
  return in_file;
}

void ToFile(const AxisOrder& axes, std::span<const float> model, std::span<float> file) {
  ForEachElement(axes,
                 [&](uint64_t in_file, uint64_t in_model) { file[in_file] = model[in_model]; });
}

void FromFile(const AxisOrder& axes, std::span<const float> file, std::span<float> model) {
  ForEachElement(axes,
                 [&](uint64_t in_file, uint64_t in_model) { model[in_model] = file[in_file]; });
}

}  // namespace leeway
