// A shard from a checkpoint.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "leeway/v1/coordinator.pb.h"
#include "leeway/v1/job.pb.h"
#include "server/shard/shard.h"

namespace leeway {

// Fills a shard from a checkpoint, whatever number of servers wrote it. If the job or the
// checkpoint is of sync mode, or if workers, batches or steps of a clock are others than they were,
// every rank goes on at the checkpoint's clock, which is the mean of theirs. `length`: of the job,
// from there on. A job that may go on from it: CheckGoesOn (server/checkpoint/manifest.h).
absl::Status LoadShard(const std::string& checkpoint, const v1::TrainingJob& job,
                       const v1::JobLength& length, Shard& shard);

}  // namespace leeway
