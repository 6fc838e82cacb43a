// The blocks of another server's shard, as this server would go on with them: what a replica is.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/blocks.h"
#include "common/mutex.h"
#include "common/payload.h"
#include "common/shared_memory.h"
#include "leeway/v1/parameter_server.pb.h"
#include "server/core/block_core.h"
#include "server/store/block_pools.h"
#include "server/store/block_store.h"
#include "server/store/shared_floats.h"

namespace leeway {

// Thread-safe; different blocks have no lock in common.
class ReplicaStore {
 public:
  struct Options {
    BlockLayout layout;
    uint32_t shard = 0;
    // In which the replica began: only what is sent for it is taken.
    uint64_t since_epoch = 0;
    // Optimizer slots of a block.
    size_t slots = 0;
    // The version before the newest is kept, too (sync).
    bool keep_previous = false;
    // Where weights lie, so that a shard can be made of them; null: on the heap.
    std::shared_ptr<SharedArena> memory;
  };
  struct Block {
    uint32_t block = 0;
    BlockValues values;
    BlockProgress progress;
    // What the workers had of the version before; empty if that has not come, or is not kept.
    SharedFloats previous;
  };

  explicit ReplicaStore(const Options& options);

  uint32_t shard() const { return options_.shard; }
  uint64_t since_epoch() const { return options_.since_epoch; }

  // Takes the place of what is there. FAILED_PRECONDITION: this is not the replica that is meant,
  // or not any more, or the state is older than the one here: the sender does not own the shard.
  // INVALID_ARGUMENT: the wrong number of values. UNAVAILABLE: `stands`, asked after the payload
  // was copied, denies that it was left as it was meanwhile; empty: it is.
  absl::Status Take(const v1::ExchangeHeader& header, const v1::ReplicatedBlock& replicated,
                    const FloatPayload& payload, const std::function<bool()>& stands = {});

  // All blocks; nothing more is taken. FAILED_PRECONDITION if one has never come.
  absl::StatusOr<std::vector<Block>> TakeOver();

 private:
  struct Slot {
    Mutex mutex;
    bool here GUARDED_BY(mutex) = false;
    bool closed GUARDED_BY(mutex) = false;
    Block block GUARDED_BY(mutex);
  };
  Slot& SlotOf(uint32_t block) { return *slots_[block / options_.layout.servers()]; }
  struct State {
    BlockValues values;
    SharedFloats previous;
  };
  // The vectors of a state, each of the block's size, out of `payload`.
  State StateOf(uint32_t block, bool has_previous, const FloatPayload& payload);

  const Options options_;
  const BlockPools pools_;
  std::vector<std::unique_ptr<Slot>> slots_;
};

}  // namespace leeway
