// The answers of servers if the job compresses weights. Each version is encoded once, when it is
// made, for all its readers.
//
// Dense codecs (bf16, fp16, int8) encode the version itself. Codecs for changes (top_k, sign)
// encode what a version adds to the `shadow`, the values that the workers have. With weights x and
// shadow z, a version sends C(x - z) and leaves the shadow z + C(x - z). So the next version's
// change contains what an encoding loses. This is error feedback that keeps only z (Tang et al.
// 2019, DoubleSqueeze; Richtarik et al. 2021, EF21).
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "common/codec/plan.h"
#include "server/store/block_store.h"

namespace leeway {

// A version as readers get it. Immutable. Empty if the block is not compressed.
struct SentVersion {
  // The encoded bytes. Null if there is nothing to encode from (the first version of a codec for
  // changes).
  std::shared_ptr<const std::string> bytes;
  // For codecs for changes only: the values of a worker after it has added the bytes to its shadow.
  SharedFloats shadow;
};

// Thread-safe.
class ReplyEncoder {
 public:
  // `store` provides the memory of shadows and outlives the encoder. Without a plan nothing is
  // compressed.
  ReplyEncoder(std::shared_ptr<const CodecPlan> plan, const BlockStore& store);

  // The encoding that readers may ask for; RAW if the block is not compressed.
  v1::Encoding encoding(uint32_t block) const;
  bool CarriesChanges(uint32_t block) const { return leeway::CarriesChanges(encoding(block)); }
  // Whether some block has a shadow, which is part of a checkpoint.
  bool keeps_shadows() const { return keeps_shadows_; }

  // The first version known here, from Initialize or from a checkpoint, which may have its shadow.
  // Without a shadow workers begin with the weights.
  SentVersion First(uint32_t block, const SharedFloats& weights, SharedFloats shadow) const;
  // The version after `before`.
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
