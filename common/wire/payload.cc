#include "common/wire/payload.h"

#include <algorithm>
#include <cstring>

namespace leeway {
namespace {

// The number of bytes that are checked together. They fit in the first-level cache.
constexpr size_t kTileBytes = 4096;

// Returns true if one of the floats, which may be at any address, is NaN or infinity. Without the
// sign bit, the bits of NaN and infinity are at least the bits of infinity, and the bits of finite
// values are less. The code compares integers, so that it vectorises and does not depend on
// floating-point options of the compiler.
bool AnyNonFinite(const uint8_t* floats, size_t count) {
  int32_t largest = 0;
  for (size_t i = 0; i < count; ++i) {
    int32_t bits;
    std::memcpy(&bits, floats + i * sizeof(bits), sizeof(bits));
    largest = std::max(largest, bits & 0x7fffffff);
  }
  return largest >= 0x7f800000;
}

}  // namespace

FloatPayload::FloatPayload(std::shared_ptr<const void> owner, PieceList pieces)
    : owner_(std::move(owner)), pieces_(std::move(pieces)) {
  // Drop empty pieces, because their address may be null and memcpy does not allow that.
  const auto empty = [](const Piece& piece) { return piece.empty(); };
  pieces_.erase(std::remove_if(pieces_.begin(), pieces_.end(), empty), pieces_.end());
  starts_.reserve(pieces_.size());
  for (const Piece& piece : pieces_) {
    starts_.push_back(bytes_);
    bytes_ += piece.size();
  }
}

FloatPayload::FloatPayload(std::shared_ptr<const FloatSource> source)
    : bytes_(source->size() * sizeof(float)), source_(std::move(source)) {}

FloatPayload FloatPayload::Of(std::span<const float> values, std::shared_ptr<const void> owner) {
  return FloatPayload(std::move(owner), {Piece(reinterpret_cast<const uint8_t*>(values.data()),
                                               values.size_bytes())});
}

void FloatPayload::Gather(size_t index, size_t position, size_t bytes, uint8_t* target) const {
  if (source_ != nullptr) {
    return source_->Read(position / sizeof(float),
                         {reinterpret_cast<float*>(target), bytes / sizeof(float)});
  }
  for (size_t i = index; bytes > 0; ++i) {
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
  const uint8_t* bytes = PayloadReader(*this).Bytes(offset, count, scratch);
  if (reinterpret_cast<uintptr_t>(bytes) % alignof(float) == 0) {
    return reinterpret_cast<const float*>(bytes);
  }
  std::memcpy(scratch, bytes, count * sizeof(float));
  return scratch;
}

void PayloadReader::MoveToPieceOf(size_t position) {
  if (payload_->source_ != nullptr) {
    end_ = payload_->bytes_;
    return;
  }
  if (position == end_ && end_ > 0) {
    ++piece_;
    begin_ = end_;
  } else {
    const auto& starts = payload_->starts_;
    piece_ = std::upper_bound(starts.begin(), starts.end(), position) - starts.begin() - 1;
    begin_ = starts[piece_];
  }
  const FloatPayload::Piece& piece = payload_->pieces_[piece_];
  end_ = begin_ + piece.size();
  data_ = piece.data();
}

void FloatPayload::CopyTo(std::span<float> target) const {
  const size_t bytes = std::min(bytes_, target.size_bytes());
  if (bytes > 0) Gather(0, 0, bytes, reinterpret_cast<uint8_t*>(target.data()));
}

size_t FloatPayload::FirstNonFinite() const {
  if (source_ != nullptr) return size();
  PayloadReader reader(*this);
  float split;
  for (size_t offset = 0; offset < size();) {
    const size_t count =
        std::clamp<size_t>(reader.Contiguous(offset), 1, kTileBytes / sizeof(float));
    const uint8_t* tile = reader.Bytes(offset, count, &split);
    if (AnyNonFinite(tile, count)) {
      // The value may be gone, because another process may write to shared memory meanwhile.
      for (size_t i = 0; i < count; ++i) {
        if (AnyNonFinite(tile + i * sizeof(float), 1)) return offset + i;
      }
    }
    offset += count;
  }
  return size();
}

}  // namespace leeway
