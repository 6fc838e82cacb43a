// The names of the folders and files of checkpoints. server/checkpoint/checkpoint_dir.h finds the
// files.
#pragma once

#include <cstdint>
#include <string>

namespace leeway {

inline constexpr char kCheckpointsFolder[] = "checkpoints";
inline constexpr char kCheckpointPrefix[] = "clock-";

std::string CheckpointFolder(const std::string& run_dir, uint64_t clock);
// Returns the name of a shard's file. `epoch` is the epoch in which the shard moved to its present
// owner. The name contains it because two owners may write the same cut. The name contains
// `generation` because an owner of an earlier generation may still be writing.
std::string ShardFileName(uint32_t index, uint32_t servers, uint64_t epoch = 0,
                          uint64_t generation = 0);
// Returns the name of the file with a rank's state at one clock of one life. Each state has its own
// name, so that no state replaces another: a complete checkpoint may refer to the older one. The
// name contains `generation` because a life that goes back to a checkpoint repeats clocks.
std::string WorkerStateFileName(uint32_t rank, uint64_t incarnation, uint64_t clock,
                                uint64_t generation = 0);

}  // namespace leeway
