// Divides a product into parts whose factors fit into the memory for their copies.
#pragma once

#include <algorithm>
#include <cstddef>

#include "worker/compute/backend.h"
#include "worker/device/cuda/kernels/factors.h"

namespace leeway::cuda {

// Rounds `elements` up to whole groups. Rows of a copy begin on 16 bytes, so that tensor cores
// accept them.
inline size_t WholeGroups(size_t elements) {
  return (elements + kGroupHalves - 1) / kGroupHalves * kGroupHalves;
}

// The rows, columns and depth of a part. They depend only on the shape and on the size of the
// memory. So do the results, because the parts along k are added in order.
struct FactorCut {
  // Computes the parts of a product. `halves` is the number of elements that fit into the copy of
  // one factor, at least 512.
  static FactorCut Of(const GemmShape& shape, size_t halves) {
    const size_t deepest = halves / kGroupHalves / kGroupHalves * kGroupHalves;
    const size_t k = std::min(shape.k, deepest);
    const size_t wide = halves / WholeGroups(k) / kGroupHalves * kGroupHalves;
    return {std::min(shape.m, wide), std::min(shape.n, wide), k};
  }

  size_t m;
  size_t n;
  size_t k;
};

}  // namespace leeway::cuda
