// A received payload in any encoding, read as floats.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/wire/payload.h"
#include "leeway/v1/parameter_server.pb.h"

namespace leeway {

// Immutable, so any number of threads may read it. A payload in a dense encoding (any but top_k) is
// decoded from the received bytes at each read. For top_k the object keeps the entries, 6 bytes
// each.
//
// The bytes may be in memory that a peer writes to (shared memory). Whatever the peer writes after
// Open(), reads stay within bounds, but values are only guaranteed to be finite while the bytes are
// unchanged.
class EncodedValues : public FloatSource {
 public:
  using Piece = std::span<const uint8_t>;

  // Opens the payload of `count` values. `pieces` are the received bytes, and `owner` keeps their
  // memory alive. Returns INVALID_ARGUMENT, with the reason, unless the bytes encode `count` finite
  // values. Allocates little memory in addition to these bytes.
  static absl::StatusOr<std::shared_ptr<const EncodedValues>> Open(
      v1::Encoding encoding, std::shared_ptr<const void> owner, FloatPayload::PieceList pieces,
      size_t count);

  // Adds the elements [0, out.size()) to `out`. For top_k this changes only the elements that have
  // an entry. (Read() is fastest if `offset` is a multiple of 256.)
  virtual void AddTo(std::span<float> out) const = 0;
};

// Decodes all values of a payload that is contiguous. Returns INVALID_ARGUMENT unless the bytes
// encode out.size() finite values, and then leaves `out` unchanged.
absl::Status Decode(v1::Encoding encoding, std::span<const uint8_t> bytes, std::span<float> out);

}  // namespace leeway
