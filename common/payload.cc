#include "common/payload.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace leeway {
namespace {

// Floats looked at together: stays in the first-level cache.
constexpr size_t kTileFloats = 1024;

// True if any value has an exponent of all ones, which is NaN or infinity. Integer arithmetic, so
// that it vectorises and no floating-point option can change it.
bool AnyNonFinite(const float* values, size_t count) {
  uint32_t found = 0;
  for (size_t i = 0; i < count; ++i) {
    found |=
        static_cast<uint32_t>((std::bit_cast<uint32_t>(values[i]) & 0x7f800000u) == 0x7f800000u);
  }
  return found != 0;
}

}  // namespace

FloatPayload::FloatPayload(std::shared_ptr<const void> owner, std::vector<Piece> pieces)
    : owner_(std::move(owner)), pieces_(std::move(pieces)) {
  // An empty piece may have no address, which memcpy must not see.
  std::erase_if(pieces_, [](const Piece& piece) { return piece.empty(); });
  starts_.reserve(pieces_.size());
  for (const Piece& piece : pieces_) {
    starts_.push_back(bytes_);
    bytes_ += piece.size();
  }
}

FloatPayload FloatPayload::Of(std::span<const float> values, std::shared_ptr<const void> owner) {
  return FloatPayload(std::move(owner), {Piece(reinterpret_cast<const uint8_t*>(values.data()),
                                               values.size_bytes())});
}

size_t FloatPayload::PieceAt(size_t position) const {
  return std::upper_bound(starts_.begin(), starts_.end(), position) - starts_.begin() - 1;
}

void FloatPayload::Gather(size_t position, size_t bytes, uint8_t* target) const {
  for (size_t i = PieceAt(position); bytes > 0; ++i) {
    const size_t skip = position - starts_[i];
    const size_t taken = std::min(bytes, pieces_[i].size() - skip);
    std::memcpy(target, pieces_[i].data() + skip, taken);
    target += taken;
    position += taken;
    bytes -= taken;
  }
}

const float* FloatPayload::Tile(size_t offset, size_t count, float* scratch) const {
  if (count == 0) return scratch;
  const size_t position = offset * sizeof(float);
  const size_t bytes = count * sizeof(float);
  const size_t index = PieceAt(position);
  const uint8_t* start = pieces_[index].data() + (position - starts_[index]);
  const bool contiguous = position + bytes <= starts_[index] + pieces_[index].size();
  if (contiguous && reinterpret_cast<uintptr_t>(start) % alignof(float) == 0) {
    return reinterpret_cast<const float*>(start);
  }
  Gather(position, bytes, reinterpret_cast<uint8_t*>(scratch));
  return scratch;
}

void FloatPayload::CopyTo(std::span<float> target) const {
  const size_t bytes = std::min(bytes_, target.size_bytes());
  if (bytes > 0) Gather(0, bytes, reinterpret_cast<uint8_t*>(target.data()));
}

size_t FloatPayload::FirstNonFinite() const {
  float scratch[kTileFloats];
  for (size_t offset = 0; offset < size(); offset += kTileFloats) {
    const size_t count = std::min(kTileFloats, size() - offset);
    const float* tile = Tile(offset, count, scratch);
    if (!AnyNonFinite(tile, count)) continue;
    for (size_t i = 0; i < count; ++i) {
      if (AnyNonFinite(tile + i, 1)) return offset + i;
    }
  }
  return size();
}

}  // namespace leeway
