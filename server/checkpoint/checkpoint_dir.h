// The checkpoints of a run folder:
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

namespace leeway {

std::string CheckpointFolder(const std::string& run_dir, uint64_t clock);
// `epoch`: of a shard that has changed hands, in which; two owners of it may write the same cut.
// `generation`: an owner from before the job went back may still be writing.
std::string ShardFileName(uint32_t index, uint32_t servers, uint64_t epoch = 0,
                          uint64_t generation = 0);
// Of one clock of one life of the rank: no state ever takes another's place, for a complete
// checkpoint may hold it, in the folder of another clock. `generation`: a life that has gone back
// comes to the same clocks again.
std::string WorkerStateFileName(uint32_t rank, uint64_t incarnation, uint64_t clock,
                                uint64_t generation = 0);

struct FoundCheckpoint {
  std::string folder;
  v1::CheckpointManifest manifest;
};
struct CheckpointSearch {
  // Absent: the run folder has no complete checkpoint.
  std::optional<FoundCheckpoint> newest;
  // On the way to it there is one that was finished and is not whole, or could not be read.
  bool damaged = false;
  // What was passed over on the way to it, newest first: which folder and why.
  std::vector<std::string> warnings;
};

// The newest checkpoint that verifies: the manifest, and size and SHA-256 of every file. An error
// only if the folder cannot be listed.
absl::StatusOr<CheckpointSearch> FindNewestCheckpoint(const std::string& run_dir);

// A run that never had a checkpoint may begin anew; DATA_LOSS for one whose checkpoints are all
// damaged, for that would write over them.
absl::Status CheckNothingLost(const std::string& run_dir, const CheckpointSearch& search);

// The clocks of what is older than the `keep` newest complete checkpoints up to `newest`,
// left-overs of unfinished ones included; never anything newer than the newest complete one of
// them. Complete means here: a manifest that verifies, and files of the right sizes. To be called
// once the manifest at `newest` is durable: what looks complete beyond it is what was passed over,
// damaged, when the job went on from an older one, and must not be counted. `keep` is at least 1.
absl::StatusOr<std::vector<uint64_t>> OldCheckpoints(const std::string& run_dir, uint64_t newest,
                                                     uint32_t keep);
// Half removed it is an unfinished one.
absl::Status RemoveCheckpoint(const std::string& run_dir, uint64_t clock);

}  // namespace leeway
