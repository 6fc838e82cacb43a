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
// A block takes the job's choice, or that of the layers whose tensors lie in it; of several choices
// the one that loses least, in this order: none, fp16, bf16, int8, sign, top_k (the larger share
// first).
//
// Averaged elements (running statistics) stand badly what gradients stand well, for they travel as
// values, not as changes: sign would give all of them one magnitude, top_k would leave most of them
// out, 8 bits would make small variances 0. So a block that holds some loses at most what bf16
// does; and nothing in a contribution for which fp16 is chosen, as a variance may be beyond its
// range.
class CodecPlan {
 public:
  // INVALID_ARGUMENT where `auto` is not resolved, a codec has no type, or `layers` names one
  // without tensors.
  static absl::StatusOr<CodecPlan> Make(const v1::Compression& compression,
                                        const v1::ModelSchema& schema, const BlockLayout& layout);

  // The plan of a job's compression; null where that loses nothing anywhere.
  static absl::StatusOr<std::shared_ptr<const CodecPlan>> Of(const v1::TrainingJob& job,
                                                             const v1::ModelSchema& schema,
                                                             const BlockLayout& layout);

  const Codec& contribution(uint32_t block) const { return *codecs_[contributions_[block]]; }
  const Codec& weights(uint32_t block) const { return *codecs_[weights_[block]]; }

  // Some block loses something: the sender of contributions keeps a residual.
  bool compresses_contributions() const { return compresses_contributions_; }
  bool compresses_weights() const { return compresses_weights_; }

 private:
  CodecPlan() = default;
  absl::StatusOr<uint8_t> IndexOf(const v1::Codec& config);

  // Each choice once.
  std::vector<std::shared_ptr<const Codec>> codecs_;
  std::vector<v1::Codec> configs_;
  // By block: which of them.
  std::vector<uint8_t> contributions_;
  std::vector<uint8_t> weights_;
  bool compresses_contributions_ = false;
  bool compresses_weights_ = false;
};

}  // namespace leeway
