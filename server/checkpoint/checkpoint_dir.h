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

// PERMISSION_DENIED unless `folder` really is in the run folder. No symbolic link below the run
// folder may lead elsewhere. The folder need not exist.
absl::Status CheckInRunFolder(const std::string& run_dir, const std::string& folder);

struct FoundCheckpoint {
  std::string folder;
  v1::CheckpointManifest manifest;
};
struct CheckpointSearch {
  // Absent: the run folder has no complete checkpoint.
  std::optional<FoundCheckpoint> newest;
  // The warnings that concern checkpoints that were finished but are damaged or could not be read.
  std::vector<std::string> damaged;
  // The folders that were skipped in the search, newest first, with the reasons.
  std::vector<std::string> warnings;
};

// Finds the newest checkpoint that verifies: its manifest, and size and SHA-256 of every file.
// Returns an error only if the folder cannot be listed, or if its storage does not answer
// (UNAVAILABLE).
absl::StatusOr<CheckpointSearch> FindNewestCheckpoint(const std::string& run_dir);

// The clocks of all folders with the name of a checkpoint, newest first.
absl::StatusOr<std::vector<uint64_t>> CheckpointClocks(const std::string& run_dir);

// A run that never had a checkpoint may begin again. DATA_LOSS if all checkpoints of the run are
// damaged, or if they are gone although its record (coordinator.json) says that there was one.
// Beginning again would overwrite what is left. Also returns the errors of reading the record.
absl::Status CheckNothingLost(const std::string& run_dir, const CheckpointSearch& search);

// The clocks of the folders that are older than the `keep` newest complete checkpoints up to
// `newest`, including the remains of unfinished ones. Never returns a clock above the newest
// complete one of them. A checkpoint is complete here if its manifest verifies and its files have
// the right sizes. To be called once the manifest at `newest` is durable. A checkpoint beyond
// `newest` that looks complete must not count: it was skipped as damaged when the job continued
// from an older one. `keep` is at least 1.
absl::StatusOr<std::vector<uint64_t>> OldCheckpoints(const std::string& run_dir, uint64_t newest,
                                                     uint32_t keep);
// A half-removed checkpoint counts as unfinished.
absl::Status RemoveCheckpoint(const std::string& run_dir, uint64_t clock);

}  // namespace leeway
