// The deterministic sum of a clock's contributions, tile by tile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "common/payload.h"

namespace leeway {

// n_i / sum n: how much each contribution weighs by its examples. All 0 if there are no examples at
// all.
std::vector<float> MeanCoefficients(std::span<const uint64_t> examples);

// Sums k contributions, given in rank order, with a binary tree whose shape depends on k alone: the
// left subtree takes the largest power of two below k. So the bits depend neither on the order of
// arrival nor on where tiles and blocks are cut. Not thread-safe (has scratch); `contributions` and
// `coefficients` must outlive it.
class Combiner {
 public:
  // Elements of a tile at most: what the tree holds of it stays in the first-level cache.
  static constexpr size_t kMaxTile = 1024;

  // sum_i coefficients[i] contributions[i]. One coefficient a contribution, at least one
  // contribution.
  Combiner(std::span<const FloatPayload* const> contributions, std::span<const float> coefficients);
  // sum_i (contributions[i] - centre), for the elastic exchange.
  static Combiner Differences(std::span<const FloatPayload* const> contributions,
                              const float* centre);

  // Elements [offset, offset + count), count <= kMaxTile; valid until the next call. A lone
  // contribution with coefficient 1 is given in place where it lies aligned and in one piece.
  const float* Tile(size_t offset, size_t count);

 private:
  struct Range {
    size_t offset;
    size_t count;
  };
  Combiner(std::span<const FloatPayload* const> contributions, std::span<const float> coefficients,
           const float* centre);
  float* Scratch(size_t index) { return scratch_.get() + index * kMaxTile; }
  // Sums contributions [first, first + k) into scratch `target`; uses those above it.
  void Sum(size_t first, size_t k, Range range, size_t target);
  void Leaf(size_t i, Range range, float* out);
  void Pair(size_t i, Range range, float* out);

  const std::span<const FloatPayload* const> contributions_;
  const std::span<const float> coefficients_;
  // Null: a weighted sum.
  const float* const centre_;
  // Two tiles for contributions that do not lie in place, then one a level of the tree.
  std::unique_ptr<float[]> scratch_;
};

}  // namespace leeway
