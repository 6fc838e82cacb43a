// A received payload: float32 values lying in pieces that may be split or unaligned anywhere, as
// the network left them, or in an encoding that is decoded as it is read. Read in place, in tiles;
// nobody else in the code knows about bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"

namespace leeway {

// Floats that have to be made to be read: a payload in an encoding (common/codec/encoded.h).
// Immutable.
class FloatSource {
 public:
  virtual ~FloatSource() = default;
  virtual size_t size() const = 0;
  // Elements [offset, offset + out.size()), which must exist. All are finite.
  virtual void Read(size_t offset, std::span<float> out) const = 0;
};

class FloatPayload {
 public:
  using Piece = std::span<const uint8_t>;
  // Mostly one, or two.
  using PieceList = absl::InlinedVector<Piece, 2>;

  FloatPayload() = default;
  // `owner` keeps the pieces' memory alive. Bytes beyond the last whole float are in bytes() only.
  FloatPayload(std::shared_ptr<const void> owner, PieceList pieces);
  // What the source gives.
  explicit FloatPayload(std::shared_ptr<const FloatSource> source);
  // A view of one contiguous vector.
  static FloatPayload Of(std::span<const float> values,
                         std::shared_ptr<const void> owner = nullptr);

  // Floats.
  size_t size() const { return bytes_ / sizeof(float); }
  // Of the float32 values.
  size_t bytes() const { return bytes_; }
  // There is a source: reading costs a decoding.
  bool decodes() const { return source_ != nullptr; }
  // As they came, whatever they are encoded in; empty if there is a source.
  const PieceList& pieces() const { return pieces_; }
  const std::shared_ptr<const void>& owner() const { return owner_; }

  // Elements [offset, offset + count): in place where they lie contiguous and aligned, else copied
  // to `scratch`, which has room for `count`. For tiles in a row take a Reader.
  const float* Tile(size_t offset, size_t count, float* scratch) const;
  void CopyTo(std::span<float> target) const;
  // Index of the first NaN or infinity; size() if there is none.
  size_t FirstNonFinite() const;

 private:
  friend class PayloadReader;

  // `index`: the piece that holds `position`.
  void Gather(size_t index, size_t position, size_t bytes, uint8_t* target) const;

  std::shared_ptr<const void> owner_;
  PieceList pieces_;
  absl::InlinedVector<size_t, 2> starts_;
  size_t bytes_ = 0;
  // In place of pieces.
  std::shared_ptr<const FloatSource> source_;
};

// Reads a payload, which must outlive it, in tiles that follow each other: remembers where it is
// among the pieces. Any order is right. Not thread-safe.
class PayloadReader {
 public:
  explicit PayloadReader(const FloatPayload& payload) : payload_(&payload) {}

  // How many elements from `offset` on, which exists, lie in one piece, whole: 0 if that one is
  // split. A source is one piece.
  size_t Contiguous(size_t offset) {
    MoveTo(offset * sizeof(float));
    return (end_ - offset * sizeof(float)) / sizeof(float);
  }
  // Where those lie; null if there are none, or if they have to be made.
  const uint8_t* InPlace(size_t offset) {
    if (Contiguous(offset) == 0 || data_ == nullptr) return nullptr;
    return data_ + (offset * sizeof(float) - begin_);
  }
  // Elements [offset, offset + count), at least one: in place where they lie in one piece, at any
  // alignment, else copied to `scratch`.
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
  // The piece's bytes of the payload, [begin_, end_), and where they lie (null: in a source).
  // Empty: nowhere yet.
  size_t begin_ = 0;
  size_t end_ = 0;
  const uint8_t* data_ = nullptr;
};

}  // namespace leeway
