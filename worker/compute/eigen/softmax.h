// Softmax of a row.
#pragma once

#include <algorithm>
#include <cstddef>

#include "worker/compute/eigen/tiles.h"

namespace leeway {

// Computes y = exp(factor * (x - max x)) for `count` values (at least one), and returns their sum
// in double. y may be x. If a value is NaN, the sum is NaN.
inline double ExpRow(size_t count, float factor, const float* x, float* y) {
  const float top = *std::max_element(x, x + count);
  double total = 0;
  ForTiles(0, count, [&](size_t first, size_t size) {
    const Tile powers = (factor * (ReadTile(x + first, size, top) - top)).exp();
    std::copy_n(powers.data(), size, y + first);
    double sum = 0;
    for (size_t i = 0; i < size; ++i) sum += powers[static_cast<int>(i)];
    total += sum;
  });
  return total;
}

}  // namespace leeway
