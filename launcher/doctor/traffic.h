// Computes how many bytes one exchange of a worker transfers.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "common/blocks.h"
#include "common/codec/plan.h"
#include "leeway/v1/coordinator.pb.h"
#include "leeway/v1/job.pb.h"

namespace leeway {

// The maximum number of payload bytes that a worker sends and receives in one exchange.
struct PlannedTraffic {
  uint64_t sent = 0;
  uint64_t received = 0;
  // The codecs of the blocks in each direction, as a line to print; empty for a job without
  // compression.
  std::string codecs;
};

// Returns the codecs of the blocks. All functions here treat `auto` as no compression, because a
// run chooses its codec only when it begins. Returns INVALID_ARGUMENT if the job's compression does
// not fit the model.
absl::StatusOr<CodecPlan> PlannedCodecs(const v1::TrainingJob& job, const v1::ModelSchema& schema,
                                        const BlockLayout& layout);
absl::StatusOr<PlannedTraffic> TrafficOf(const v1::TrainingJob& job, const v1::ModelSchema& schema,
                                         const BlockLayout& layout);

}  // namespace leeway
