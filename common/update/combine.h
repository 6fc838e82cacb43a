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

// Of one contribution. A larger count would not stay a whole number as a weight.
inline constexpr uint64_t kExamplesMax = uint64_t{1} << 48;

// n_i / sum n: how much each contribution weighs by its examples. All 0 if there are no examples at
// all.
std::vector<float> MeanCoefficients(std::span<const uint64_t> examples);

// Sums k contributions, given in rank order, with a binary tree whose shape depends on k alone: the
// left subtree takes the largest power of two below k. So the bits depend neither on the order of
// arrival nor on where tiles and blocks are cut. Not thread-safe (has scratch); `contributions` and
// `coefficients` must outlive it. Lies on the stack, some tens of KiB; few
// contributions need no other memory.
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
  // sum_i coefficients[i] (contributions[i] - centre), for averaged elements.
  static Combiner Differences(std::span<const FloatPayload* const> contributions,
                              std::span<const float> coefficients, const float* centre);

  // The most elements from `offset` on, at least 1 and at most `count`, of which nothing has to be
  // copied together: pieces of contributions end there. The tiles to come are of these.
  size_t Run(size_t offset, size_t count);
  // Elements [offset, offset + count) of the run, 0 < count <= kMaxTile; valid until the next call.
  // A lone contribution with coefficient 1 is given in place where it lies aligned and in one
  // piece.
  const float* Tile(size_t offset, size_t count);

 private:
  // Leaves that are summed in one pass, with the inner sums in registers.
  static constexpr size_t kMaxLeaves = 8;
  // By contribution, elements [begin, end) of it, in one piece, and where they lie; null: to
  // be copied.
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
  // Sums contributions [first, first + k) into `out`; `level` counts the sums that wait for it.
  void Sum(size_t first, size_t k, Range range, float* out, size_t level);
  Part PartAt(size_t index, size_t offset);
  // The contribution's floats of `range`.
  const uint8_t* Bytes(size_t index, Range range, float* scratch) {
    const Part& part = parts_[index];
    if (part.place != nullptr) return part.place + (range.offset - part.begin) * sizeof(float);
    return readers_[index].Bytes(range.offset, range.count, scratch);
  }
  // The same for 1, 2, 4 or 8 of them; with `add`, out += that sum.
  void Leaves(size_t first, size_t k, Range range, float* out, bool add);

  const std::span<const FloatPayload* const> contributions_;
  // Empty: all 1.
  const std::span<const float> coefficients_;
  // Null: a weighted sum.
  const float* const centre_;
  absl::InlinedVector<PayloadReader, kMaxLeaves> readers_;
  // By contribution.
  absl::InlinedVector<Part, kMaxLeaves> parts_;
  // One tile a level of the tree, once a sum needs it: 1 to 6 and 8 contributions do not.
  std::unique_ptr<float[]> levels_;
  alignas(64) float sum_[kMaxTile];
  // Tiles of leaves that do not lie in place.
  alignas(64) float gathered_[kMaxLeaves][kMaxTile];
};

}  // namespace leeway
