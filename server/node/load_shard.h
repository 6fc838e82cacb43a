// Loads a shard from a checkpoint.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "leeway/v1/coordinator.pb.h"
#include "leeway/v1/job.pb.h"
#include "server/shard/shard.h"

namespace leeway {

// Fills a shard from a checkpoint that any number of servers wrote. Each rank continues at its own
// clock, except in two cases: the job or the checkpoint is in sync mode, or the number of workers,
// batches or steps of a clock has changed. In these cases every rank continues at the checkpoint's
// clock, which is the mean of the ranks' clocks. `length` is the length of the job from that clock
// on. The job must be allowed to continue from this checkpoint: CheckGoesOn
// (server/checkpoint/manifest.h).
absl::Status LoadShard(const std::string& checkpoint, const v1::TrainingJob& job,
                       const v1::JobLength& length, Shard& shard);

}  // namespace leeway
