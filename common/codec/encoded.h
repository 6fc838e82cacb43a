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

// Immutable; any number of threads may read. The dense encodings (all but top_k) are decoded in
// place at each read. top_k keeps its entries, 6 bytes each.
//
// The bytes may be in memory that a peer writes to (shared memory). Whatever the peer writes after
// Open(), reads stay within bounds, but values are only guaranteed to be finite while the bytes are
// unchanged.
class EncodedValues : public FloatSource {
 public:
  using Piece = std::span<const uint8_t>;

  // Opens the payload of `count` values, in pieces as they arrived; `owner` keeps their memory
  // alive. INVALID_ARGUMENT, with the reason, unless the bytes encode `count` finite values.
  // Allocates little memory beyond that of the bytes.
  static absl::StatusOr<std::shared_ptr<const EncodedValues>> Open(
      v1::Encoding encoding, std::shared_ptr<const void> owner, FloatPayload::PieceList pieces,
      size_t count);

  // Adds the elements [0, out.size()) to `out`. For top_k this touches the entries only. (Read() is
  // fastest if `offset` is a multiple of 256.)
  virtual void AddTo(std::span<float> out) const = 0;
};

// Decodes all values of one contiguous payload. After INVALID_ARGUMENT (as above) `out` is
// unchanged.
absl::Status Decode(v1::Encoding encoding, std::span<const uint8_t> bytes, std::span<float> out);

}  // namespace leeway
