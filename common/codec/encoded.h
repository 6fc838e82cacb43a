// A received payload in some encoding, read as floats.
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

// Immutable; any number of threads may read. The dense encodings (all but top_k) are decoded at
// each reading, from where the network left them; top_k keeps its entries, 6 bytes each.
//
// The bytes may lie in memory that a peer writes to (shared memory): whatever becomes of them after
// Open(), reading stays within bounds, but is promised finite values for unchanged bytes only.
class EncodedValues : public FloatSource {
 public:
  using Piece = std::span<const uint8_t>;

  // The payload of `count` values, in pieces as they came; `owner` keeps their memory alive.
  // INVALID_ARGUMENT, saying what is wrong, unless the bytes are an encoding of `count` finite
  // values. Allocates little beyond what the bytes take.
  static absl::StatusOr<std::shared_ptr<const EncodedValues>> Open(
      v1::Encoding encoding, std::shared_ptr<const void> owner, FloatPayload::PieceList pieces,
      size_t count);

  // Read() is fastest where offset is a multiple of 256.
  // out += elements [0, out.size()). Of top_k this touches the entries only.
  virtual void AddTo(std::span<float> out) const = 0;
};

// All values of one contiguous payload. INVALID_ARGUMENT as above, and `out` is as it was.
absl::Status Decode(v1::Encoding encoding, std::span<const uint8_t> bytes, std::span<float> out);

}  // namespace leeway
