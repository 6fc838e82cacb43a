// Encodes the answers of servers if the job compresses weights. Each version is encoded once, when
// it is made, and all readers get the same bytes.
//
// Dense codecs (bf16, fp16, int8) encode the version itself. Codecs for changes (top_k, sign)
// encode the difference between a version and the shadow: the values that the workers have. For
// weights x and shadow z the server sends C(x - z), and the shadow becomes z + C(x - z). So the
// change for the next version includes what this encoding has lost. This is error feedback with z
// as its only state (Tang et al. 2019, DoubleSqueeze; Richtarik et al. 2021, EF21).
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "common/codec/plan.h"
#include "server/store/block_store.h"

namespace leeway {

// A version in the form in which readers get it. Immutable. Empty if the block is not compressed.
struct SentVersion {
  // The encoded bytes. Null for the first version of a codec for changes, because no shadow exists
  // yet from which a change could be computed.
  std::shared_ptr<const std::string> bytes;
  // Only for codecs for changes: the values of a worker after it has added the decoded bytes to its
  // shadow.
  SharedFloats shadow;
};

// Thread-safe.
class ReplyEncoder {
 public:
  // `store` provides the memory for shadows and must outlive the encoder. If `plan` is null,
  // nothing is compressed.
  ReplyEncoder(std::shared_ptr<const CodecPlan> plan, const BlockStore& store);

  // The encoding that readers may request. RAW if the block is not compressed.
  v1::Encoding encoding(uint32_t block) const;
  bool CarriesChanges(uint32_t block) const { return leeway::CarriesChanges(encoding(block)); }
  // Returns true if some block has a shadow. Shadows are part of a checkpoint.
  bool keeps_shadows() const { return keeps_shadows_; }

  // Encodes the first version known here, which comes from Initialize or from a checkpoint. A
  // checkpoint may have a shadow. Without a shadow workers begin with the weights.
  SentVersion First(uint32_t block, const SharedFloats& weights, SharedFloats shadow) const;
  // Encodes `weights`, the version after `before`.
  SentVersion Next(uint32_t block, const SentVersion& before, std::span<const float> weights) const;

 private:
  std::shared_ptr<const std::string> Encode(uint32_t block, std::span<const float> values) const;
  SentVersion NextChange(uint32_t block, const SentVersion& before,
                         std::span<const float> weights) const;

  const std::shared_ptr<const CodecPlan> plan_;
  const BlockStore& store_;
  bool keeps_shadows_ = false;
};

}  // namespace leeway
