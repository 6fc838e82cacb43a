// A received payload: float32 values lying in pieces that may be split or unaligned anywhere, as
// the network left them. Read in place, in tiles; nobody else in the code knows about bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"

namespace leeway {

class FloatPayload {
 public:
  using Piece = std::span<const uint8_t>;

  FloatPayload() = default;
  // `owner` keeps the pieces' memory alive. The sum of the pieces must be a multiple of 4 bytes
  // (common/wire.h checks it).
  FloatPayload(std::shared_ptr<const void> owner, std::vector<Piece> pieces);
  // A view of one contiguous vector.
  static FloatPayload Of(std::span<const float> values,
                         std::shared_ptr<const void> owner = nullptr);

  // Floats.
  size_t size() const { return bytes_ / sizeof(float); }

  // Elements [offset, offset + count): in place where they lie contiguous and aligned, else copied
  // to `scratch`, which has room for `count`.
  const float* Tile(size_t offset, size_t count, float* scratch) const;
  void CopyTo(std::span<float> target) const;
  // Index of the first NaN or infinity; size() if there is none.
  size_t FirstNonFinite() const;

 private:
  // Index of the piece that holds byte `position`.
  size_t PieceAt(size_t position) const;
  void Gather(size_t position, size_t bytes, uint8_t* target) const;

  std::shared_ptr<const void> owner_;
  std::vector<Piece> pieces_;
  std::vector<size_t> starts_;
  size_t bytes_ = 0;
};

}  // namespace leeway
