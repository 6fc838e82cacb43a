// The checkpoints of a run folder, which is a folder or s3://BUCKET/PREFIX:
//   checkpoints/clock-000000500/
//     shard-0-of-2.lwck     by the servers
//     worker-1-life-1-clock-500.lwck
//                           by the coordinator: what a worker keeps between clocks
//     MANIFEST.json         by the coordinator, last
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "leeway/v1/checkpoint.pb.h"
#include "server/core/checkpoint_names.h"

namespace leeway {

// PERMISSION_DENIED unless `folder` really lies in the run folder: no symbolic link below the run
// folder may lead elsewhere. The folder need not exist.
absl::Status CheckInRunFolder(const std::string& run_dir, const std::string& folder);

struct FoundCheckpoint {
  std::string folder;
  v1::CheckpointManifest manifest;
};
struct CheckpointSearch {
  // Absent: the run folder has no complete checkpoint.
  std::optional<FoundCheckpoint> newest;
  // Those of the warnings that concern checkpoints that were finished and are damaged, or could not
  // be read.
  std::vector<std::string> damaged;
  // The folders that were skipped on the way to it, newest first, and why.
  std::vector<std::string> warnings;
};

// The newest checkpoint that verifies: the manifest, and size and SHA-256 of every file. An error
// only if the folder cannot be listed, or its storage does not answer (UNAVAILABLE).
absl::StatusOr<CheckpointSearch> FindNewestCheckpoint(const std::string& run_dir);

// Of all folders that are named as checkpoints, newest first.
absl::StatusOr<std::vector<uint64_t>> CheckpointClocks(const std::string& run_dir);

// A run that never had a checkpoint may begin anew. DATA_LOSS for a run whose checkpoints are all
// damaged, or gone though its record (coordinator.json) says that there was one: beginning anew
// would overwrite what came of it. Also returns the errors of reading the record.
absl::Status CheckNothingLost(const std::string& run_dir, const CheckpointSearch& search);

// The clocks of folders older than the `keep` newest complete checkpoints up to `newest`, including
// the remains of unfinished ones. Never returns anything newer than the newest complete one of
// them. Complete means here: a manifest that verifies, and files of the right sizes. Call it once
// the manifest at `newest` is durable. A checkpoint beyond it that looks complete was skipped as
// damaged when the job continued from an older one, and must not count. `keep` is at least 1.
absl::StatusOr<std::vector<uint64_t>> OldCheckpoints(const std::string& run_dir, uint64_t newest,
                                                     uint32_t keep);
// A checkpoint that is half removed counts as unfinished.
absl::Status RemoveCheckpoint(const std::string& run_dir, uint64_t clock);

}  // namespace leeway
