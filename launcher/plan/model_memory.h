// Computes for `leeway plan` the memory of a job's processes that depends on the model's size,
// without activations, data and messages in flight. The functions are pure.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "common/codec/codec.h"
#include "leeway/v1/job.pb.h"

namespace leeway {

// The number of residuals that a worker keeps if contributions are compressed. A residual is a
// vector of the model's size with the values that compression has lost. The worker keeps the
// residuals before and after the latest contribution (client/calls/contribution_encoder.h).
inline constexpr uint64_t kResiduals = 2;

// Returns the number of values of optimizer state that the servers keep for each element, or the
// error of MakeServerRule.
absl::StatusOr<uint64_t> ServerSlots(const v1::TrainingJob& job);

// Returns the number of vectors of the model's size that a worker has. These are the vectors of its
// exchange (worker/training) and the residuals of compressed contributions. With local steps there
// are two copies of the optimizer's slots, too: the slots in use, and the slots at the end of the
// last clock. `steps_per_clock` includes accumulated batches.
absl::StatusOr<uint64_t> VectorsOfWorker(const v1::TrainingJob& job, uint64_t steps_per_clock,
                                         bool keeps_residual);

// Returns the largest number of vectors of the model's size that a worker has for the exchange with
// other workers (exchange/carriers), beside those of VectorsOfWorker. 0 if it exchanges with the
// holders of the blocks only.
uint64_t VectorsOfPeers(const v1::TrainingJob& job);

// Returns the memory that a server needs for compressed answers about a block of `elements`, in
// addition to the block's weights and slots. If the codec carries changes, this memory has the
// weights that workers have, at two versions. For other codecs it has two encoded versions.
uint64_t ReplyBytes(const Codec& weights, uint64_t elements);
// Returns the same for the server that keeps the block's replica.
uint64_t ReplicaReplyBytes(const Codec& weights, uint64_t elements);

}  // namespace leeway
