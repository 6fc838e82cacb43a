// Applies Eigen's vector functions to values at any address. Eigen computes the ends of an
// unaligned array with scalar functions, which round differently. So values are copied to aligned
// tiles, in which Eigen uses vector functions only, and the address does not matter.
#pragma once

#include <algorithm>
#include <cstddef>

#include <Eigen/Core>

namespace leeway {

inline constexpr size_t kTile = 64;
using Tile = Eigen::Array<float, static_cast<int>(kTile), 1>;

// Reads at most kTile values, and fills the remainder of the tile with `rest`.
inline Tile ReadTile(const float* x, size_t count, float rest = 0) {
  Tile tile = Tile::Constant(rest);
  std::copy_n(x, count, tile.data());
  return tile;
}

// Calls body(first, size) for tiles that cover [begin, end).
template <typename Body>
void ForTiles(size_t begin, size_t end, Body body) {
  for (size_t first = begin; first < end; first += kTile) {
    body(first, std::min(kTile, end - first));
  }
}

}  // namespace leeway
