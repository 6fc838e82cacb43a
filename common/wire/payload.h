// A received payload. Its values are either raw float32 or in an encoding that is decoded while it
// is read. Raw values stay in the pieces that the network delivered, unaligned or split between
// pieces. They are read in place, in tiles. No other code reads the bytes of raw payloads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"

namespace leeway {

// Floats that are computed when they are read, such as those of an encoded payload
// (common/codec/encoded.h). Immutable.
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
  // The pieces of a payload, which are mostly one or two.
  using PieceList = absl::InlinedVector<Piece, 2>;

  FloatPayload() = default;
  // `owner` keeps the memory of the pieces alive. Bytes after the last whole float count in bytes()
  // only.
  FloatPayload(std::shared_ptr<const void> owner, PieceList pieces);
  // Makes a payload with the values of the source.
  explicit FloatPayload(std::shared_ptr<const FloatSource> source);
  // Makes a view of one contiguous vector.
  static FloatPayload Of(std::span<const float> values,
                         std::shared_ptr<const void> owner = nullptr);

  // Returns the number of floats.
  size_t size() const { return bytes_ / sizeof(float); }
  // Returns the number of bytes of the float32 values.
  size_t bytes() const { return bytes_; }
  // Returns whether the payload has a source, so that its values are decoded while they are read.
  bool decodes() const { return source_ != nullptr; }
  // Returns the bytes as they arrived, in any encoding. Empty if there is a source.
  const PieceList& pieces() const { return pieces_; }
  const std::shared_ptr<const void>& owner() const { return owner_; }

  // Returns the elements [offset, offset + count). If they are contiguous and aligned, the result
  // points to them. Otherwise they are copied to `scratch`, which has room for `count` floats. To
  // read consecutive tiles, use a PayloadReader.
  const float* Tile(size_t offset, size_t count, float* scratch) const;
  void CopyTo(std::span<float> target) const;
  // Returns the index of the first NaN or infinity, or size() if all values are finite.
  size_t FirstNonFinite() const;

 private:
  friend class PayloadReader;

  // Copies bytes from `position` on. `index` is the index of the piece that contains `position`.
  void Gather(size_t index, size_t position, size_t bytes, uint8_t* target) const;

  std::shared_ptr<const void> owner_;
  PieceList pieces_;
  absl::InlinedVector<size_t, 2> starts_;
  size_t bytes_ = 0;
  // The source of the values. Null if the values are in the pieces.
  std::shared_ptr<const FloatSource> source_;
};

// Reads a payload in consecutive tiles. The reader remembers its position among the pieces, so
// consecutive reads are fast. Any other order is correct, too. The payload must outlive the reader.
// Not thread-safe.
class PayloadReader {
 public:
  explicit PayloadReader(const FloatPayload& payload) : payload_(&payload) {}

  // Returns the number of whole elements from `offset` on that are in one piece. The element at
  // `offset` must exist. If it is split between pieces, returns 0. A source is one piece.
  size_t Contiguous(size_t offset) {
    MoveTo(offset * sizeof(float));
    return (end_ - offset * sizeof(float)) / sizeof(float);
  }
  // Returns the address of the elements that Contiguous(offset) counts. Returns null if it counts 0
  // or the payload has a source.
  const uint8_t* InPlace(size_t offset) {
    if (Contiguous(offset) == 0 || data_ == nullptr) return nullptr;
    return data_ + (offset * sizeof(float) - begin_);
  }
  // Returns the elements [offset, offset + count), at least one. If they are in one piece, at any
  // alignment, the result points to them. Otherwise they are copied to `scratch`.
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
  // The current piece contains the bytes [begin_, end_) of the payload, at `data_` (null for a
  // source). If the range is empty, there is no current piece yet.
  size_t begin_ = 0;
  size_t end_ = 0;
  const uint8_t* data_ = nullptr;
};

}  // namespace leeway
