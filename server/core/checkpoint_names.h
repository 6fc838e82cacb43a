// The names of the files of a checkpoint. server/checkpoint/checkpoint_dir.h finds them.
#pragma once

#include <cstdint>
#include <string>

namespace leeway {

inline constexpr char kCheckpointsFolder[] = "checkpoints";
inline constexpr char kCheckpointPrefix[] = "clock-";

std::string CheckpointFolder(const std::string& run_dir, uint64_t clock);
// `epoch` is the one in which the shard changed hands, because two owners may write the same cut.
// `generation` is in the name because an owner from before the job went back may still be writing.
std::string ShardFileName(uint32_t index, uint32_t servers, uint64_t epoch = 0,
                          uint64_t generation = 0);
// Names the state of one clock of one life of the rank. No state ever replaces another one, because
// a complete checkpoint may hold it in the folder of another clock. `generation` is in the name
// because a life that has gone back comes to the same clocks again.
std::string WorkerStateFileName(uint32_t rank, uint64_t incarnation, uint64_t clock,
                                uint64_t generation = 0);

}  // namespace leeway
