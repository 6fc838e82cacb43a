// Encodes contributions on the host.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "client/calls/contribution_encoder.h"
#include "common/blocks.h"
#include "common/buffer.h"
#include "common/codec/codec.h"

namespace leeway {

// Several threads may encode at once, if no two of them encode the same block. Read, Undo and Set
// concern all blocks, so no other thread may use the object meanwhile. `layout` outlives the
// object. Read and Set return no errors.
class Residuals final : public ContributionEncoder {
 public:
  explicit Residuals(const BlockLayout& layout);

  EncodedContribution Encode(const Codec& codec, uint32_t block, uint64_t clock,
                             std::span<const float> values) override;
  absl::Status Read(uint64_t clock, std::span<float> out) const override;
  void Undo(uint64_t clock) override;
  absl::Status Set(std::span<const float> values) override;

 private:
  const BlockLayout& layout_;
  FloatBuffer after_;
  FloatBuffer before_;
  // For each block, the latest clock whose contribution was encoded.
  std::vector<std::optional<uint64_t>> clocks_;
};

// Encodes the sum of `values` and `residual` into new bytes, and sets `residual` to the loss of
// this encoding (Codec::Encode).
EncodedContribution EncodeBytes(const Codec& codec, std::span<const float> values,
                                std::span<float> residual);

}  // namespace leeway
