// The bytes of one server's blocks: weights and optimizer slots, copy-on-write. The store knows
// neither workers nor clocks; server/core decides when an update is made. A version is immutable.
// An update writes the weights and slots of the next version into memory from a pool. The pool gets
// the replaced memory back when the last reader of that memory is done. So replies are neither torn
// nor copied, and a checkpoint is a set of references. A rejected update is dropped; nothing has to
// be undone. The pool reuses the most recently returned memory first, so it needs spare memory for
// only one block for each running update. (For the cost in memory traffic see
// docs/lab/performance.md, Update rules.)
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "common/blocks.h"
#include "common/update/averaging.h"
#include "common/update/rule.h"
#include "common/update/tile_writer.h"
#include "common/wire/payload.h"
#include "server/store/block_pools.h"
#include "server/store/shared_floats.h"

namespace leeway {

// The values of one block at one moment.
struct BlockValues {
  SharedFloats weights;
  // The optimizer slots, by the rule's slot index.
  std::vector<SharedFloats> slots;
  // The shadow: the values that the workers have in place of the weights
  // (server/store/reply_encoder.h). Empty if the workers have the weights themselves. The store
  // does not keep shadows.
  SharedFloats shadow;
};

// The optimizer slots of one block. Up to two slots, the usual number, need no separate allocation.
using BlockSlots = absl::InlinedVector<SharedFloats, 2>;

// An update between Begin and Commit.
struct BlockWrite {
  SharedFloats weights_in;
  SharedFloats weights_out;
  BlockSlots slots_in;
  BlockSlots slots_out;
  // True if a reader waits for the weights, and reads them as soon as they are committed.
  bool awaited = true;
};

struct ContributionWeight {
  // The factor on the trained elements of the contribution. An elastic update ignores this factor.
  float trained = 0;
  // The contribution's share in the update of averaged elements. The sum of all shares is at most
  // 1.
  double averaged = 0;
  // The number of batches from which the contribution was computed. Used for averaged elements.
  double batches = 0;
};
using ContributionWeights = absl::InlinedVector<ContributionWeight, 1>;

// The caller serialises the calls for one block by holding that block's lock
// (server/shard/shard.h). Begin and Run need no lock, but for each block the caller lets only one
// thread run them at a time. Until Commit other threads may read the block, and no thread writes
// it. Different blocks are independent.
class BlockStore {
 public:
  struct Options {
    // The number of leading elements of the model that are trained.
    uint64_t trained = 0;
    // The other elements, and how they are averaged.
    std::vector<AveragedElements> averaged = {};
    // The factors by which the step differs among the trained elements (common/update/factors.h).
    std::vector<UpdatePart> parts = {};
    // True if the rule is the elastic centre's.
    bool elastic = false;
    // True if the version before the newest stays readable (sync).
    bool keep_previous = false;
    // The memory for weights, from which workers on this host can read. If null, the heap is used.
    std::shared_ptr<SharedArena> memory = nullptr;
    // The memory for optimizer slots. If the replica's server is on this host, it can read from
    // this memory. If null, the heap is used.
    std::shared_ptr<SharedArena> slot_memory = nullptr;
  };

  BlockStore(const BlockLayout& layout, uint32_t server, std::unique_ptr<UpdateRule> rule,
             const Options& options);

  // Returns true if this server has the block. `block` is the block's number in the model.
  bool Has(uint32_t block) const;
  ElementRange Range(uint32_t block) const { return layout_.Range(block); }
  // The number of leading elements of the block that are trained.
  size_t TrainedIn(uint32_t block) const;
  const BlockLayout& layout() const { return layout_; }
  uint32_t server() const { return server_; }
  // The names of the slots, in the order of BlockValues::slots.
  const std::vector<std::string>& slot_names() const { return slot_names_; }

  // Sets the block's weights, and the slots to the rule's start values.
  void Set(uint32_t block, const FloatPayload& weights);
  // Allocate and AllocateSlot return memory of the block's size, into which a caller loads weights
  // or an optimizer slot. Set then makes them the block's values.
  SharedFloats Allocate(uint32_t block) const;
  SharedFloats AllocateSlot(uint32_t block) const;
  void Set(uint32_t block, BlockValues values);
  // Sets the previous version. Only with keep_previous.
  void SetPrevious(uint32_t block, SharedFloats weights);

  // Current and CurrentWeights return references to the current values. Before the block has
  // values, the references are empty.
  BlockValues Current(uint32_t block) const;
  SharedFloats CurrentWeights(uint32_t block) const;
  // Returns true if the rule keeps a moving average of the weights.
  bool keeps_average() const { return rule_->average_slot().has_value(); }
  // Returns the moving average of the weights. Only if keeps_average().
  SharedFloats CurrentAverage(uint32_t block) const;
  // Returns true if an update may skip elements. Returns false if the rule depends on the number of
  // updates of the block.
  bool may_skip() const { return !rule_->uses_number(); }
  // Returns the previous version, or an empty reference before the first update. Only with
  // keep_previous.
  SharedFloats PreviousWeights(uint32_t block) const;

  // Begin, Run and Commit are the three steps of an update. Begin chooses the memory, and Run
  // computes; neither needs the caller's lock. The block does not change before Commit. Run returns
  // false if the result is not finite (common/update/apply.h). The caller must then drop the write.
  BlockWrite Begin(uint32_t block) const;
  // `rates` has the factors of the step's learning rate, and says which trained elements are
  // skipped. If it is empty, the factor is 1 and no element is skipped.
  bool Run(uint32_t block, const BlockWrite& write,
           std::span<const FloatPayload* const> contributions,
           std::span<const ContributionWeight> weights, const UpdateStep& step,
           std::span<const UpdatePart> rates = {}) const;
  void Commit(uint32_t block, BlockWrite write);
  // Makes an update that changes no values: the next version equals the current one.
  void Skip(uint32_t block);

 private:
  // Each block has a cache line of its own, because different threads update neighbouring blocks.
  struct alignas(64) Block {
    SharedFloats current;
    SharedFloats previous;
    BlockSlots slots;
  };

  Block& At(uint32_t block) { return blocks_[block / layout_.shards()]; }
  const Block& At(uint32_t block) const { return blocks_[block / layout_.shards()]; }

  const BlockLayout layout_;
  const uint32_t server_;
  const std::unique_ptr<const UpdateRule> rule_;
  const Options options_;
  std::vector<std::string> slot_names_;
  // True if a block's weights and slots will have left all caches by the time of its next update.
  const FarFromReaders far_;
  const BlockPools pools_;
  std::vector<Block> blocks_;
};

}  // namespace leeway
