// How the files of a checkpoint are called, beside server/checkpoint/checkpoint_dir.h, which finds
// them.
#pragma once

#include <cstdint>
#include <string>

namespace leeway {

inline constexpr char kCheckpointsFolder[] = "checkpoints";
inline constexpr char kCheckpointPrefix[] = "clock-";

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

}  // namespace leeway
