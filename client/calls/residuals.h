// Contributions that the host encodes.
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

// Several threads may use different blocks at once. A single block, and all of Read, Undo and Set,
// may be used by one thread at a time. `layout` outlives it. Read and Set return no errors.
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
  // By block: the latest clock that was encoded.
  std::vector<std::optional<uint64_t>> clocks_;
};

// Encodes values + residual into bytes of its own, and leaves in `residual` what that loses
// (Codec::Encode).
EncodedContribution EncodeBytes(const Codec& codec, std::span<const float> values,
                                std::span<float> residual);

}  // namespace leeway
