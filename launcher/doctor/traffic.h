// What one exchange of a worker moves.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "common/blocks.h"
#include "common/codec/plan.h"
#include "leeway/v1/coordinator.pb.h"
#include "leeway/v1/job.pb.h"

namespace leeway {

// Bytes of payloads, at most.
struct PlannedTraffic {
  uint64_t sent = 0;
  uint64_t received = 0;
  // Which codecs the blocks take, each way, as a line to print; empty for a job without
  // compression.
  std::string codecs;
};

// Which codecs the blocks take. `auto` counts as none, here and below: what it stands for is chosen
// when the run begins. INVALID_ARGUMENT where the job's compression does not fit the model.
absl::StatusOr<CodecPlan> PlannedCodecs(const v1::TrainingJob& job, const v1::ModelSchema& schema,
                                        const BlockLayout& layout);
absl::StatusOr<PlannedTraffic> TrafficOf(const v1::TrainingJob& job, const v1::ModelSchema& schema,
                                         const BlockLayout& layout);

}  // namespace leeway
