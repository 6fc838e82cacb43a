#include "common/codec/pieces.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace leeway {

Pieces::Pieces(std::shared_ptr<const void> owner, FloatPayload::PieceList pieces)
    : owner_(std::move(owner)), pieces_(std::move(pieces)) {
  // Drop empty pieces, because their address may be null and memcpy does not allow that.
  const auto empty = [](const Piece& piece) { return piece.empty(); };
  pieces_.erase(std::remove_if(pieces_.begin(), pieces_.end(), empty), pieces_.end());
  starts_.reserve(pieces_.size());
  for (const Piece& piece : pieces_) {
    starts_.push_back(size_);
    size_ += piece.size();
  }
}

const uint8_t* Pieces::At(size_t offset, size_t count, uint8_t* scratch) const {
  if (count == 0) return scratch;
  size_t i = std::upper_bound(starts_.begin(), starts_.end(), offset) - starts_.begin() - 1;
  size_t skip = offset - starts_[i];
  if (skip + count <= pieces_[i].size()) return pieces_[i].data() + skip;
  for (size_t done = 0; done < count; ++i, skip = 0) {
    const size_t taken = std::min(count - done, pieces_[i].size() - skip);
    std::memcpy(scratch + done, pieces_[i].data() + skip, taken);
    done += taken;
  }
  return scratch;
}

}  // namespace leeway
