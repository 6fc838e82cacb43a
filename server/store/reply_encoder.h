// What servers answer where the job compresses weights: each version is encoded once, when it is
// made, whoever reads it.
//
// Dense codecs (bf16, fp16, int8) write the version itself. Codecs that carry changes (top_k, sign)
// write what a version adds to the `shadow`, which is what the workers have: with weights x and
// shadow z a version sends C(x - z) and leaves z + C(x - z). So what an encoding loses is in the
// next version's change: error feedback with nothing kept but z (Tang et al. 2019, DoubleSqueeze;
// Richtarik et al. 2021, EF21).
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "common/codec/plan.h"
#include "server/store/block_store.h"

namespace leeway {

// A version as readers get it. Immutable; of a block that is not compressed empty.
struct SentVersion {
  // Encoded; null where there is nothing to encode from (the first version of a changes codec).
  std::shared_ptr<const std::string> bytes;
  // Changes codecs only: what a worker has that added the bytes to the shadow before.
  SharedFloats shadow;
};

// Thread-safe.
class ReplyEncoder {
 public:
  // `store`, where shadows come from, outlives it. Without a plan nothing is compressed.
  ReplyEncoder(std::shared_ptr<const CodecPlan> plan, const BlockStore& store);

  // What readers may ask for; RAW where the block is not compressed.
  v1::Encoding encoding(uint32_t block) const;
  bool CarriesChanges(uint32_t block) const { return leeway::CarriesChanges(encoding(block)); }
  // Some block has a shadow, which is part of a checkpoint.
  bool keeps_shadows() const { return keeps_shadows_; }

  // The first version known here, of Initialize or of a checkpoint, which may have its shadow;
  // without one workers begin with the weights.
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
