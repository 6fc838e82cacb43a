// A sequence of bytes in several pieces of memory. A value may be split between two pieces.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "common/wire/payload.h"

namespace leeway {

class Pieces {
 public:
  using Piece = FloatPayload::Piece;

  // `owner` keeps the memory of the pieces alive.
  Pieces(std::shared_ptr<const void> owner, FloatPayload::PieceList pieces);

  size_t size() const { return size_; }
  // Returns the bytes [offset, offset + count), which must exist. If they are in one piece, the
  // result points to them; otherwise they are copied to `scratch`, which has room for `count`.
  const uint8_t* At(size_t offset, size_t count, uint8_t* scratch) const;

 private:
  std::shared_ptr<const void> owner_;
  FloatPayload::PieceList pieces_;
  absl::InlinedVector<size_t, 2> starts_;
  size_t size_ = 0;
};

}  // namespace leeway
