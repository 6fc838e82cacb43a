// The deterministic sum of a clock's contributions, tile by tile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "common/wire/payload.h"

namespace leeway {

// The most examples that one contribution can have. A larger count might not stay a whole number
// when it is used as a weight.
inline constexpr uint64_t kExamplesMax = uint64_t{1} << 48;

// Returns n_i / sum n: the weight of each contribution by its number of examples. All weights are 0
// if there are no examples at all.
std::vector<float> MeanCoefficients(std::span<const uint64_t> examples);

// Sums k contributions, given in rank order, with a binary tree whose shape depends on k alone: the
// left subtree takes the largest power of two below k. So the bits do not depend on the order of
// arrival or on the borders of tiles and blocks. Not thread-safe, because it has scratch memory.
// `contributions` and `coefficients` must outlive the combiner. It is meant for the stack and takes
// some tens of KiB there; with few contributions it allocates no other memory.
class Combiner {
 public:
  // The most elements in a tile. With this size, the tile's data in the tree stays in the
  // first-level cache.
  static constexpr size_t kMaxTile = 1024;

  // Computes sum_i coefficients[i] contributions[i]. There is at least one contribution, and one
  // coefficient for each.
  Combiner(std::span<const FloatPayload* const> contributions, std::span<const float> coefficients);
  // Computes sum_i (contributions[i] - centre), for the elastic exchange.
  static Combiner Differences(std::span<const FloatPayload* const> contributions,
                              const float* centre);
  // Computes sum_i coefficients[i] (contributions[i] - centre), for averaged elements.
  static Combiner Differences(std::span<const FloatPayload* const> contributions,
                              std::span<const float> coefficients, const float* centre);

  // Begins a run at `offset` and returns its length, at least 1 and at most `count`. A run is the
  // longest stretch of elements in which no piece of a contribution ends, so it can be read without
  // joining pieces. The following calls of Tile read from this run.
  size_t Run(size_t offset, size_t count);
  // Returns elements [offset, offset + count) of the run, with 0 < count <= kMaxTile; valid until
  // the next call. For a single contribution with coefficient 1 that is aligned and in one piece,
  // the result points into the contribution.
  const float* Tile(size_t offset, size_t count);

 private:
  // The most leaves that are summed in one pass, with the inner sums in registers.
  static constexpr size_t kMaxLeaves = 8;
  // Elements [begin, end) of one contribution, which lie in one piece at `place`. If `place` is
  // null, they must be copied.
  struct Part {
    size_t begin = 0;
    size_t end = 0;
    const uint8_t* place = nullptr;
  };
  struct Range {
    size_t offset;
    size_t count;
  };
  Combiner(std::span<const FloatPayload* const> contributions, std::span<const float> coefficients,
           const float* centre);
  // Sums contributions [first, first + k) into `out`. `level` is the number of unfinished sums
  // above this one.
  void Sum(size_t first, size_t k, Range range, float* out, size_t level);
  Part PartAt(size_t index, size_t offset);
  // Returns the contribution's floats in `range`.
  const uint8_t* Bytes(size_t index, Range range, float* scratch) {
    const Part& part = parts_[index];
    if (part.place != nullptr) return part.place + (range.offset - part.begin) * sizeof(float);
    return readers_[index].Bytes(range.offset, range.count, scratch);
  }
  // Writes the sum of 1, 2, 4 or 8 contributions to `out`, or adds it to `out` if `add` is true.
  void Leaves(size_t first, size_t k, Range range, float* out, bool add);

  const std::span<const FloatPayload* const> contributions_;
  // If empty, all coefficients are 1.
  const std::span<const float> coefficients_;
  // If null, contributions are summed, otherwise their differences from the centre.
  const float* const centre_;
  absl::InlinedVector<PayloadReader, kMaxLeaves> readers_;
  // One part for each contribution.
  absl::InlinedVector<Part, kMaxLeaves> parts_;
  // One tile for each level of the tree, allocated when a sum first needs them. Sums of 1 to 6 or
  // of 8 contributions need no such tiles.
  std::unique_ptr<float[]> levels_;
  alignas(64) float sum_[kMaxTile];
  // Copies of leaves that cannot be read in place.
  alignas(64) float gathered_[kMaxLeaves][kMaxTile];
};

}  // namespace leeway
