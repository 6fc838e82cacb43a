// What of a model's size the processes of a job keep in memory, besides activations, data and what
// is on its way: the arithmetic of `leeway plan`. Pure.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "common/codec/codec.h"
#include "leeway/v1/job.pb.h"

namespace leeway {

// What compressed contributions have lost, before and after the latest of them
// (client/calls/contribution_encoder.h): vectors of the model's size.
inline constexpr uint64_t kResiduals = 2;

// Optimizer state that the servers keep for each element. MakeServerRule's error.
absl::StatusOr<uint64_t> ServerSlots(const v1::TrainingJob& job);

// Vectors of the whole model that a worker has: those of its exchange (worker/exchange), with
// local steps also its optimizer's slots, in use and as the last clock left them, and the residuals
// of contributions that are compressed. `steps_per_clock`: of a clock, accumulated batches too.
absl::StatusOr<uint64_t> VectorsOfWorker(const v1::TrainingJob& job, uint64_t steps_per_clock,
                                         bool keeps_residual);

// Bytes that compressed answers cost the server of a block of `elements` besides its weights and
// slots: what workers have of two versions (codecs that carry changes), or two encoded versions.
uint64_t ReplyBytes(const Codec& weights, uint64_t elements);
// And the one that keeps the block's replica.
uint64_t ReplicaReplyBytes(const Codec& weights, uint64_t elements);

}  // namespace leeway
