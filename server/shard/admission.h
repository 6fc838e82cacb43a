// What a server lets in though it holds as much as it may (server/service/byte_budget.h), so that a
// bound on memory never stops the job.
//
// Sync mode holds a block's contributions until the last worker's has come, so a bound smaller than
// all of them could keep out the very one that would free the others. Therefore what belongs to the
// oldest incomplete block, the lowest number among those of the lowest version, is always let in.
// Why this cannot deadlock: let D be that block, at version v. Every worker whose contribution to D
// is missing can read version v of every block of this server, for no block is older; take the
// server whose version is the lowest of all and it can read version v everywhere, so it computes
// clock v and sends it. Nothing that the server refuses keeps it from sending D: what it sends
// before D may be refused, but a refusal is an answer, and a client that limits what is under way
// lets the lowest block go first (client/calls/call_queue.h); blocks lower than D are complete and
// are answered. So D completes, whatever is held, and its contributions are freed; the next block
// is the oldest then. A client of one's own that waits for each block before it sends the next must
// go upwards (docs/protocol.md).
//
// So a server holds at most the bound, one contribution of each worker to one block, and the
// messages that are being looked at.
//
// Initialize is let in as it comes: its payload is copied into the first version and gone when the
// call returns, and before the first version there is nothing that waits.
//
// Where committed sets are made (consistency.backup_workers, on_worker_loss: continue) a clock's
// contributions must all lie on all servers before the set is known: all of the current clock are
// let in. Outside of sync an update waits for nobody: what can be applied at once is let in.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "common/mutex.h"

namespace leeway {

// The oldest incomplete block of a shard. Thread-safe; a version costs a store, and only who asks
// pays more.
class Admission {
 public:
  // Blocks are counted 0, 1, ... in the order of their numbers; all are at version 0.
  explicit Admission(uint32_t blocks) : versions_(blocks) {}

  // Versions rise.
  void OnVersion(uint32_t index, uint64_t version) {
    versions_[index].store(version, std::memory_order_relaxed);
  }

  // Amortised, a look at each block a version.
  uint32_t Oldest();

 private:
  uint64_t VersionOf(uint32_t index) const {
    return versions_[index].load(std::memory_order_relaxed);
  }
  uint64_t LowestVersion() const;

  std::vector<std::atomic<uint64_t>> versions_;
  Mutex mutex_;
  // Every block before `index_` is beyond `version_`, all others are at it at least.
  uint32_t index_ GUARDED_BY(mutex_) = 0;
  uint64_t version_ GUARDED_BY(mutex_) = 0;
};

}  // namespace leeway
