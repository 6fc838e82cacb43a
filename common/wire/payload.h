// A received payload: float32 values in pieces that may be split or unaligned anywhere, as the
// network left them, or in an encoding that is decoded while it is read. The payload is read in
// place, in tiles. No other code deals with bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"

namespace leeway {

// Floats that are computed when they are read: a payload in an encoding (common/codec/encoded.h).
// Immutable.
class FloatSource {
 public:
  virtual ~FloatSource() = default;
  virtual size_t size() const = 0;
  // Reads the elements [offset, offset + out.size()), which must exist. All values are finite.
  virtual void Read(size_t offset, std::span<float> out) const = 0;
};

class FloatPayload {
 public:
  using Piece = std::span<const uint8_t>;
  // A payload mostly has one or two pieces.
  using PieceList = absl::InlinedVector<Piece, 2>;

  FloatPayload() = default;
  // `owner` keeps the memory of the pieces alive. Bytes beyond the last whole float appear in
  // bytes() only.
  FloatPayload(std::shared_ptr<const void> owner, PieceList pieces);
  // The payload has the values of the source.
  explicit FloatPayload(std::shared_ptr<const FloatSource> source);
  // Makes a view of one contiguous vector.
  static FloatPayload Of(std::span<const float> values,
                         std::shared_ptr<const void> owner = nullptr);

  // The number of floats.
  size_t size() const { return bytes_ / sizeof(float); }
  // The number of bytes of the float32 values.
  size_t bytes() const { return bytes_; }
  // Whether the payload has a source, so that reading it decodes.
  bool decodes() const { return source_ != nullptr; }
  // The bytes as they arrived, in any encoding; empty if there is a source.
  const PieceList& pieces() const { return pieces_; }
  const std::shared_ptr<const void>& owner() const { return owner_; }

  // Returns the elements [offset, offset + count). If they are contiguous and aligned, the result
  // points to them; otherwise they are copied to `scratch`, which has room for `count`. To read
  // consecutive tiles, use a PayloadReader.
  const float* Tile(size_t offset, size_t count, float* scratch) const;
  void CopyTo(std::span<float> target) const;
  // Returns the index of the first NaN or infinity; size() if all values are finite.
  size_t FirstNonFinite() const;

 private:
  friend class PayloadReader;

  // Copies bytes from `position` on. `index`: the piece that has `position`.
  void Gather(size_t index, size_t position, size_t bytes, uint8_t* target) const;

  std::shared_ptr<const void> owner_;
  PieceList pieces_;
  absl::InlinedVector<size_t, 2> starts_;
  size_t bytes_ = 0;
  // Replaces the pieces.
  std::shared_ptr<const FloatSource> source_;
};

// Reads a payload in consecutive tiles. It remembers its position among the pieces, but any
// order of reads is correct. The payload must outlive the reader. Not thread-safe.
class PayloadReader {
 public:
  explicit PayloadReader(const FloatPayload& payload) : payload_(&payload) {}

  // Returns how many whole elements from `offset` on, which must exist, are in one piece; 0 if the
  // element at `offset` is split. A source counts as one piece.
  size_t Contiguous(size_t offset) {
    MoveTo(offset * sizeof(float));
    return (end_ - offset * sizeof(float)) / sizeof(float);
  }
  // Returns the address of these elements; null if their number is 0 or they are decoded.
  const uint8_t* InPlace(size_t offset) {
    if (Contiguous(offset) == 0 || data_ == nullptr) return nullptr;
    return data_ + (offset * sizeof(float) - begin_);
  }
  // Returns the elements [offset, offset + count), at least one. If they are in one piece, at any
  // alignment, the result points to them; otherwise they are copied to `scratch`.
  const uint8_t* Bytes(size_t offset, size_t count, float* scratch) {
    const size_t position = offset * sizeof(float), bytes = count * sizeof(float);
    MoveTo(position);
    if (bytes <= end_ - position && data_ != nullptr) return data_ + (position - begin_);
    payload_->Gather(piece_, position, bytes, reinterpret_cast<uint8_t*>(scratch));
    return reinterpret_cast<const uint8_t*>(scratch);
  }

 private:
  void MoveTo(size_t position) {
    if (position - begin_ >= end_ - begin_) MoveToPieceOf(position);
  }
  void MoveToPieceOf(size_t position);

  const FloatPayload* payload_;
  size_t piece_ = 0;
  // The piece has the bytes [begin_, end_) of the payload, at `data_` (null for a source). An empty
  // range means that no piece is chosen yet.
  size_t begin_ = 0;
  size_t end_ = 0;
  const uint8_t* data_ = nullptr;
};

}  // namespace leeway
