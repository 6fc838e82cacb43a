// Bytes lying in pieces that may be split anywhere.
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

  // `owner` keeps the pieces' memory alive.
  Pieces(std::shared_ptr<const void> owner, FloatPayload::PieceList pieces);

  size_t size() const { return size_; }
  // Bytes [offset, offset + count), which must exist: in place where they lie together, else copied
  // to `scratch`, which has room for `count`.
  const uint8_t* At(size_t offset, size_t count, uint8_t* scratch) const;

 private:
  std::shared_ptr<const void> owner_;
  FloatPayload::PieceList pieces_;
  absl::InlinedVector<size_t, 2> starts_;
  size_t size_ = 0;
};

}  // namespace leeway
