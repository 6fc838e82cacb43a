// The codec that each block uses in each direction.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "common/blocks.h"
#include "common/codec/codec.h"
#include "leeway/v1/coordinator.pb.h"
#include "leeway/v1/job.pb.h"

namespace leeway {

// Worker and server make the same plan from the same job. Immutable, thread-safe.
//
// A layer uses its own codec if it has one, and else the job's. A block uses the codec of the
// layers whose tensors it contains. If they differ, it uses the one that loses least. From the
// least to the most loss: none, fp16, bf16, int8, sign, top_k (of two top_k, the larger share loses
// less).
//
// Averaged elements (running statistics) tolerate less loss than gradients, because they are sent
// as values and not as changes. With sign all of them would have the same magnitude, with top_k
// most of them would be missing, and with int8 small variances would become 0. So a block with
// averaged elements never loses more than with bf16. If fp16 is chosen for contributions, such a
// block is sent unchanged, because a variance may be out of fp16's range.
class CodecPlan {
 public:
  // Returns INVALID_ARGUMENT if `auto` is not resolved, a codec has no type, or `layers` names a
  // layer without tensors.
  static absl::StatusOr<CodecPlan> Make(const v1::Compression& compression,
                                        const v1::ModelSchema& schema, const BlockLayout& layout);

  // Returns the plan of a job's compression, or null if all codecs of the job are lossless.
  static absl::StatusOr<std::shared_ptr<const CodecPlan>> Of(const v1::TrainingJob& job,
                                                             const v1::ModelSchema& schema,
                                                             const BlockLayout& layout);

  const Codec& contribution(uint32_t block) const { return *codecs_[contributions_[block]]; }
  const Codec& weights(uint32_t block) const { return *codecs_[weights_[block]]; }

  // Return whether a block loses precision in this direction. If contributions lose precision,
  // their sender keeps a residual.
  bool compresses_contributions() const { return compresses_contributions_; }
  bool compresses_weights() const { return compresses_weights_; }

 private:
  CodecPlan() = default;
  absl::StatusOr<uint8_t> IndexOf(const v1::Codec& config);

  // The codecs of the plan and their configurations, each once.
  std::vector<std::shared_ptr<const Codec>> codecs_;
  std::vector<v1::Codec> configs_;
  // The index of each block's codec, by direction.
  std::vector<uint8_t> contributions_;
  std::vector<uint8_t> weights_;
  bool compresses_contributions_ = false;
  bool compresses_weights_ = false;
};

}  // namespace leeway
