// Encodes contributions, and keeps the residual: the difference that the encoding has lost.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "absl/status/status.h"
#include "common/codec/codec.h"

namespace leeway {

// The bytes stay unchanged as long as `owner` lives. Without an owner they stay unchanged as long
// as the contribution itself.
struct EncodedContribution {
  std::span<const uint8_t> bytes;
  std::shared_ptr<const void> owner = nullptr;
};

// Does error feedback (Seide et al. 2014; Karimireddy et al. 2019, algorithm 2), block by block.
// The encoder keeps two residuals of each block, from before and from after the block's latest
// contribution, so that an exchange that was broken off can be repeated.
class ContributionEncoder {
 public:
  virtual ~ContributionEncoder() = default;

  // Encodes the block's contribution of `clock`, which is the block's latest clock or a later one.
  // If the latest clock is encoded again, the same values give the same bytes.
  virtual EncodedContribution Encode(const Codec& codec, uint32_t block, uint64_t clock,
                                     std::span<const float> values) = 0;

  // Reads the whole vector of residuals as it was before the contribution of `clock`, which is the
  // latest clock or a later one. Returns an error if a device fails.
  virtual absl::Status Read(uint64_t clock, std::span<float> out) const = 0;
  // Restores the residuals as they were before the contribution of `clock`. Call this function when
  // the contributions of `clock` and later clocks were dropped. `clock` is the latest clock or a
  // later one.
  virtual void Undo(uint64_t clock) = 0;
  // Sets the residuals, before the first contribution. Returns an error if a device fails.
  virtual absl::Status Set(std::span<const float> values) = 0;
};

}  // namespace leeway
