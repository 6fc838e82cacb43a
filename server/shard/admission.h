// Decides which contributions a server admits although its memory budget is used up
// (server/service/byte_budget.h), so that a bound on memory never stops the job. In sync mode a
// block's contributions are held until the last worker's contribution has arrived. A bound below
// their total size could exclude the one contribution that would release all the others. Therefore
// every contribution to the oldest incomplete block is admitted. The oldest incomplete block is the
// block with the lowest number among the blocks with the lowest version. This cannot deadlock. Let
// D be the oldest incomplete block of the server with the lowest version of all servers, and let v
// be the version of D. A worker whose contribution to D is missing can read version v of every
// block, because no block of any server is older. So this worker computes clock v and sends its
// contributions. The servers may refuse what it sends before its contribution to D, but a refusal
// is an answer, too, and frees the client for its next request. A client that limits its requests
// in flight sends the lowest block first (client/calls/call_queue.h). Requests for blocks below D
// are answered, because those blocks are complete. So the contribution to D comes, and D completes,
// however much memory is held. Its contributions are then released, and another block becomes the
// oldest. A client of another kind that waits for each block before it sends the next must send
// blocks in rising order (docs/protocol.md).
//
// So a server holds at most the bound, one contribution of each worker to one block, and the
// messages that the server is decoding.
//
// Initialize is always admitted. Its payload is copied into the first version and released when the
// call returns, and no request waits before the first version exists.
//
// With committed sets (consistency.backup_workers, on_worker_loss: continue) all contributions of a
// clock must be on the servers before the set is decided. So all contributions of the current clock
// are admitted. Outside of sync an update waits for no other contribution, so a contribution that
// can be applied at once is admitted.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "common/mutex.h"

namespace leeway {

// Finds the oldest incomplete block of a shard. Thread-safe. OnVersion costs one store to memory;
// only Oldest() costs more.
class Admission {
 public:
  // Blocks have the indices 0, 1, ... in the order of their numbers. All begin at version 0.
  explicit Admission(uint32_t blocks) : versions_(blocks) {}

  // Reports the block's new version. A block's versions must rise.
  void OnVersion(uint32_t index, uint64_t version) {
    versions_[index].store(version, std::memory_order_relaxed);
  }

  // Returns the index of the oldest incomplete block. On average, the function looks at each block
  // once for each version.
  uint32_t Oldest();

 private:
  uint64_t VersionOf(uint32_t index) const {
    return versions_[index].load(std::memory_order_relaxed);
  }
  uint64_t LowestVersion() const;

  std::vector<std::atomic<uint64_t>> versions_;
  Mutex mutex_;
  // Every block before `index_` is above `version_`. No other block is below `version_`.
  uint32_t index_ GUARDED_BY(mutex_) = 0;
  uint64_t version_ GUARDED_BY(mutex_) = 0;
};

}  // namespace leeway
