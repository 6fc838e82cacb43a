// Which codec each block takes, in each direction.
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
// A block takes the job's choice, or that of the layers whose tensors are in the block. If there
// are several choices, it takes the one that loses least, in this order: none, fp16, bf16, int8,
// sign, top_k (the larger share first).
//
// Averaged elements (running statistics) tolerate less loss than gradients, because they are sent
// as values, not as changes: sign would give all of them one magnitude, top_k would leave most of
// them out, and 8 bits would make small variances 0. So a block with averaged elements loses at
// most what bf16 loses. If fp16 is chosen for contributions, such a block loses nothing, because a
// variance may be out of fp16's range.
class CodecPlan {
 public:
  // INVALID_ARGUMENT if `auto` is not resolved, a codec has no type, or `layers` names a layer
  // without tensors.
  static absl::StatusOr<CodecPlan> Make(const v1::Compression& compression,
                                        const v1::ModelSchema& schema, const BlockLayout& layout);

  // Returns the plan of a job's compression; null if the job loses nothing anywhere.
  static absl::StatusOr<std::shared_ptr<const CodecPlan>> Of(const v1::TrainingJob& job,
                                                             const v1::ModelSchema& schema,
                                                             const BlockLayout& layout);

  const Codec& contribution(uint32_t block) const { return *codecs_[contributions_[block]]; }
  const Codec& weights(uint32_t block) const { return *codecs_[weights_[block]]; }

  // True if some block loses precision, so that the sender of contributions keeps a residual.
  bool compresses_contributions() const { return compresses_contributions_; }
  bool compresses_weights() const { return compresses_weights_; }

 private:
  CodecPlan() = default;
  absl::StatusOr<uint8_t> IndexOf(const v1::Codec& config);

  // Each choice occurs once.
  std::vector<std::shared_ptr<const Codec>> codecs_;
  std::vector<v1::Codec> configs_;
  // For each block, the index of its codec.
  std::vector<uint8_t> contributions_;
  std::vector<uint8_t> weights_;
  bool compresses_contributions_ = false;
  bool compresses_weights_ = false;
};

}  // namespace leeway
