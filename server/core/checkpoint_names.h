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
// owner; it is in the name because two owners may write the same cut. `generation` is in the name
// because an owner of an earlier generation may still be writing.
std::string ShardFileName(uint32_t index, uint32_t servers, uint64_t epoch = 0,
                          uint64_t generation = 0);
// Returns the name of the file with a rank's state at one clock of one life. No state ever replaces
// another, because a complete checkpoint in the folder of another clock may refer to the old state.
// `generation` is in the name because a life that goes back to a checkpoint repeats clocks.
std::string WorkerStateFileName(uint32_t rank, uint64_t incarnation, uint64_t clock,
                                uint64_t generation = 0);

}  // namespace leeway
