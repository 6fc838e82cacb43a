// Which processes hold the blocks: servers of their own, or the workers (topology).
#pragma once

#include <cstdint>

#include "leeway/v1/job.pb.h"

namespace leeway {

// Returns true if each worker's process also serves some of the blocks. Server 0 is then only the
// coordinator and holds no blocks.
bool WorkersHoldBlocks(const v1::TrainingJob& job);
// Returns the index of the server in the process of worker `rank`, if workers hold blocks.
inline uint32_t ServerOfRank(uint32_t rank) { return rank + 1; }

// Returns the number of servers at the start, including those in the workers' processes.
uint32_t ServersOf(const v1::TrainingJob& job);
// Returns how many of these servers are processes of their own.
uint32_t ServerProcessesOf(const v1::TrainingJob& job);
// Returns the same job with servers in place of the workers that hold blocks, one server for each.
v1::TrainingJob WithServers(const v1::TrainingJob& job);

// Returns the first server that may hold blocks.
uint32_t FirstHolderOf(const v1::TrainingJob& job);

}  // namespace leeway
