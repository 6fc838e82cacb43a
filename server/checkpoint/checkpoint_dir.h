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

// Returns PERMISSION_DENIED if `folder` is not in the run folder after symbolic links are resolved.
// No symbolic link below the run folder may lead elsewhere. `folder` need not exist.
absl::Status CheckInRunFolder(const std::string& run_dir, const std::string& folder);

struct FoundCheckpoint {
  std::string folder;
  v1::CheckpointManifest manifest;
};
struct CheckpointSearch {
  // The newest complete checkpoint, if the run folder has a complete one.
  std::optional<FoundCheckpoint> newest;
  // Warnings about checkpoints that were finished, but are damaged or could not be read.
  std::vector<std::string> damaged;
  // The folders that the search skipped, newest first, with the reasons. These include the warnings
  // in `damaged`.
  std::vector<std::string> warnings;
};

// Finds the newest checkpoint whose manifest is valid and whose files all have the right size and
// SHA-256. Returns an error only if the folder cannot be listed, or if its storage does not answer
// (UNAVAILABLE).
absl::StatusOr<CheckpointSearch> FindNewestCheckpoint(const std::string& run_dir);

// Returns the clocks of all folders that are named like a checkpoint, newest first.
absl::StatusOr<std::vector<uint64_t>> CheckpointClocks(const std::string& run_dir);

// Checks that a run without a complete checkpoint may begin again. Returns DATA_LOSS if all
// checkpoints of the run are damaged, because a new beginning would overwrite what is left of them.
// Also returns DATA_LOSS if there are no checkpoints although the run's record (coordinator.json)
// names one. Also returns the errors of reading the record.
absl::Status CheckNothingLost(const std::string& run_dir, const CheckpointSearch& search);

// Returns the clocks of the folders that are older than the `keep` newest complete checkpoints up
// to `newest`, including folders of unfinished checkpoints. A checkpoint is complete here if its
// manifest verifies and its files have the right sizes. A checkpoint above `newest` does not count,
// even if it looks complete: it was skipped as damaged when the job continued from an older
// checkpoint. Call this once the manifest at `newest` is durable. `keep` is at least 1.
absl::StatusOr<std::vector<uint64_t>> OldCheckpoints(const std::string& run_dir, uint64_t newest,
                                                     uint32_t keep);
// Removes a checkpoint. If the removal is interrupted, the rest of the checkpoint counts as
// unfinished.
absl::Status RemoveCheckpoint(const std::string& run_dir, uint64_t clock);

}  // namespace leeway
