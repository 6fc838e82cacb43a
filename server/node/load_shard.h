// A shard from a checkpoint.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "leeway/v1/job.pb.h"
#include "server/shard/shard.h"

namespace leeway {

// Fills a shard from a checkpoint, whatever number of servers wrote it. If the job or the
// checkpoint is of sync mode, or with another number of workers than the checkpoint's, every rank
// goes on at the smallest clock; the mean clock stays what it was. A job that may go on
// from it: CheckGoesOn (server/checkpoint/manifest.h).
absl::Status LoadShard(const std::string& checkpoint, const v1::TrainingJob& job, Shard& shard);

}  // namespace leeway
