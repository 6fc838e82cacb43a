// How a product is cut into parts whose factors fit where their copies go.
#pragma once

#include <algorithm>
#include <cstddef>

#include "worker/compute/backend.h"
#include "worker/device/cuda/kernels/factors.h"

namespace leeway::cuda {

// Whole groups: rows of a copy begin on 16 bytes, so that tensor cores take them.
inline size_t WholeGroups(size_t elements) {
  return (elements + kGroupHalves - 1) / kGroupHalves * kGroupHalves;
}

// Rows, columns and depth of a part. A function of the shape and the fixed room alone, so results
// are, too: the parts along k add up in order.
struct FactorCut {
  // `halves`: how many elements the copy of one factor may have; at least 512.
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
