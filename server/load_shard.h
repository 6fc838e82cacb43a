// A shard from a checkpoint.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "leeway/v1/job.pb.h"
#include "server/shard.h"

namespace leeway {

// Fills a shard from a checkpoint, whatever number of servers wrote it. In sync mode, or with
// another number of workers than the checkpoint's, every rank goes on at the smallest clock.
absl::Status LoadShard(const std::string& checkpoint, const v1::TrainingJob& job, Shard& shard);

}  // namespace leeway
