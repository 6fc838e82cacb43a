// Which processes hold the blocks: servers of their own, or the workers (topology).
#pragma once

#include <cstdint>

#include "leeway/v1/job.pb.h"

namespace leeway {

// Returns true if each worker's process also serves some of the blocks. Server 0 is then only the
// coordinator and holds no blocks.
bool WorkersHoldBlocks(const v1::TrainingJob& job);
// Returns true if workers also fetch from each other what they publish (EXCHANGE_METHOD_FETCH), so
// that each must know where the others listen.
bool WorkersFetch(const v1::TrainingJob& job);
// Returns true if a block's sum is passed from worker to worker, so that one worker sends it for
// all (ExchangeHeader.of_all).
bool SumsTravel(const v1::TrainingJob& job);
// Returns true if each worker trains weights of its own, so that the blocks hold the mean of all.
bool IsGossip(const v1::TrainingJob& job);
// Returns the number of clocks between two exchanges of that mean, and 1 for other topologies. A
// job stops after a multiple of this number of clocks, so that the mean has all changes.
uint64_t MeanEvery(const v1::TrainingJob& job);
// Returns the smallest multiple of `every` that is at least `clock`.
inline uint64_t NextMultiple(uint64_t clock, uint64_t every) {
  return (clock + every - 1) / every * every;
}
// Returns the name of the topology's type: servers, all_reduce or gossip.
const char* TopologyType(const v1::TrainingJob& job);
// Returns the index of the server in the process of worker `rank`, if workers hold blocks.
inline uint32_t ServerOfRank(uint32_t rank) { return rank + 1; }
// Returns the worker whose process has the server.
inline uint32_t RankOfServer(uint32_t server) { return server - 1; }

// Returns the number of servers at the start, including those in the workers' processes.
uint32_t ServersOf(const v1::TrainingJob& job);
// Returns how many of these servers are processes of their own.
uint32_t ServerProcessesOf(const v1::TrainingJob& job);
// Returns the same job with servers in place of the workers that hold blocks, one server for each.
v1::TrainingJob WithServers(const v1::TrainingJob& job);

// Returns the first server that may hold blocks.
uint32_t FirstHolderOf(const v1::TrainingJob& job);

}  // namespace leeway
