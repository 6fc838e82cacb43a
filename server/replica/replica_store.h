// A replica of another server's shard. If this server takes over the shard, it continues from the
// blocks here.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/blocks.h"
#include "common/mutex.h"
#include "common/shm/shared_memory.h"
#include "common/wire/payload.h"
#include "leeway/v1/parameter_server.pb.h"
#include "server/core/block_core.h"
#include "server/store/block_pools.h"
#include "server/store/block_store.h"
#include "server/store/shared_floats.h"

namespace leeway {

// Thread-safe. Different blocks share no lock.
class ReplicaStore {
 public:
  struct Options {
    BlockLayout layout;
    uint32_t shard = 0;
    // The epoch in which the replica began. Only states that are sent for this epoch are accepted.
    uint64_t since_epoch = 0;
    // The number of optimizer slots of a block.
    size_t slots = 0;
    // True if the version before the newest is kept, too (sync mode).
    bool keep_previous = false;
    // The memory for weights. It is the memory of this server's shards, too, because a shard may
    // continue with these weights. If null, the heap is used.
    std::shared_ptr<SharedArena> memory;
  };
  struct Block {
    uint32_t block = 0;
    BlockValues values;
    BlockProgress progress;
    // The previous version as the workers received it. Empty if it has not arrived or is not kept.
    SharedFloats previous;
  };

  explicit ReplicaStore(const Options& options);

  uint32_t shard() const { return options_.shard; }
  uint64_t since_epoch() const { return options_.since_epoch; }

  // Replaces the state of a block. Returns FAILED_PRECONDITION if the sender does not own the shard
  // any more. This is the case if the sender means another replica, or if its state is older than
  // the state here. Returns INVALID_ARGUMENT for a wrong number of values. Take calls `stands`
  // after it has copied the payload. If `stands` returns false, the payload changed meanwhile, and
  // Take returns UNAVAILABLE. An empty `stands` means that the payload cannot change.
  absl::Status Take(const v1::ExchangeHeader& header, const v1::ReplicatedBlock& replicated,
                    const FloatPayload& payload, const std::function<bool()>& stands = {});

  // Returns FAILED_PRECONDITION if a block has never arrived.
  absl::Status CheckWhole() const;
  // Returns all blocks and accepts no more states. Returns FAILED_PRECONDITION if a block has never
  // arrived.
  absl::StatusOr<std::vector<Block>> TakeOver();

 private:
  struct Slot {
    Mutex mutex;
    bool here GUARDED_BY(mutex) = false;
    bool closed GUARDED_BY(mutex) = false;
    Block block GUARDED_BY(mutex);
  };
  Slot& SlotOf(uint32_t block) { return *slots_[block / options_.layout.shards()]; }
  struct State {
    BlockValues values;
    SharedFloats previous;
  };
  // Returns an error that begins with `what` unless the state is for this replica, and has the
  // right number of values.
  absl::Status Check(const std::string& what, uint32_t block, const v1::ReplicatedBlock& replicated,
                     const FloatPayload& payload) const;
  // Copies the vectors of a state from `payload`. Each vector has the block's size.
  State StateOf(uint32_t block, bool has_previous, const FloatPayload& payload);

  const Options options_;
  const BlockPools pools_;
  std::vector<std::unique_ptr<Slot>> slots_;
};

}  // namespace leeway
