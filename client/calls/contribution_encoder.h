// Encodes contributions, and keeps what encoding has lost of them.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "absl/status/status.h"
#include "common/codec/codec.h"

namespace leeway {

// The bytes stay as they are for as long as `owner` lives; without one, for as long as the
// contribution itself.
struct EncodedContribution {
  std::span<const uint8_t> bytes;
  std::shared_ptr<const void> owner = nullptr;
};

// Error feedback (Seide et al. 2014; Karimireddy et al. 2019, algorithm 2), block by block, so that
// an exchange that is broken off can be done again: it knows the residual after the latest
// contribution of each block and the one before it.
class ContributionEncoder {
 public:
  virtual ~ContributionEncoder() = default;

  // The contribution of `clock` for the block. Clocks rise; the latest may be encoded anew, and
  // from the same values gives the same bytes.
  virtual EncodedContribution Encode(const Codec& codec, uint32_t block, uint64_t clock,
                                     std::span<const float> values) = 0;

  // The residual before the contribution of `clock`, which is the latest clock or a later one: the
  // whole vector. A device's error.
  virtual absl::Status Read(uint64_t clock, std::span<float> out) const = 0;
  // The contributions of `clock` and later count for nothing: neither does what they have lost or
  // made good. `clock` is the latest or a later one.
  virtual void Undo(uint64_t clock) = 0;
  // Before the first contribution. A device's error.
  virtual absl::Status Set(std::span<const float> values) = 0;
};

}  // namespace leeway
