// What a server admits although its memory budget is used up (server/service/byte_budget.h), so
// that a bound on memory never stops the job.
//
// In sync mode a block's contributions are held until the last worker's contribution has come. A
// bound below their total could keep out the very contribution that would release the others.
// Therefore every contribution to the oldest incomplete block is admitted. That is the block with
// the lowest number among those with the lowest version.
//
// This cannot deadlock. Let D be that block, at version v, on the server whose lowest version is
// the lowest of all servers. A worker whose contribution to D is missing can read version v of
// every block, because no block of any server is older. So it computes clock v and sends it.
// Contributions that it sends before D may be refused, but a refusal is an answer, and a client
// that limits its requests in flight sends the lowest block first (client/calls/call_queue.h). Blocks
// lower than D are complete and are answered. So D completes, however much is held, its
// contributions are released, and another block becomes the oldest. A client of another kind that
// waits for each block before it sends the next must send blocks in rising order
// (docs/protocol.md).
//
// So a server holds at most the bound, one contribution of each worker to one block, and the
// messages that it is decoding.
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

// Finds the oldest incomplete block of a shard. Thread-safe. A new version costs one store; only
// Oldest() costs more.
class Admission {
 public:
  // Blocks have the indices 0, 1, ... in the order of their numbers. All begin at version 0.
  explicit Admission(uint32_t blocks) : versions_(blocks) {}

  // A block's versions must rise.
  void OnVersion(uint32_t index, uint64_t version) {
    versions_[index].store(version, std::memory_order_relaxed);
  }

  // Looks at each block once for each version, on average.
  uint32_t Oldest();

 private:
  uint64_t VersionOf(uint32_t index) const {
    return versions_[index].load(std::memory_order_relaxed);
  }
  uint64_t LowestVersion() const;

  std::vector<std::atomic<uint64_t>> versions_;
  Mutex mutex_;
  // Every block before `index_` is above `version_`. All others are at least at `version_`.
  uint32_t index_ GUARDED_BY(mutex_) = 0;
  uint64_t version_ GUARDED_BY(mutex_) = 0;
};

}  // namespace leeway
