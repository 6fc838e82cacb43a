// The bytes of one server's blocks: weights and optimizer slots, copy-on-write. The store knows
// neither workers nor clock rules; server/core decides those.
//
// A version is immutable. An update writes the next version, weights and slots, into memory of a
// pool. The pool gets the replaced memory back when its last reader is done. So replies are never
// torn and never copied, a checkpoint is a set of references, and a rejected update is dropped
// without undoing anything. The pool gives out first what came back last, so the spare memory is
// one block for each update under way. (For the cost in memory traffic see docs/lab/performance.md,
// Update rules.)
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
  // By the rule's slot index.
  std::vector<SharedFloats> slots;
  // What the workers have instead of the weights (server/store/reply_encoder.h). Empty if workers
  // have the weights themselves. The store does not keep it.
  SharedFloats shadow;
};

// The slots of one block. The usual number of slots needs no separate memory.
using BlockSlots = absl::InlinedVector<SharedFloats, 2>;

// An update between Begin and Commit.
struct BlockWrite {
  SharedFloats weights_in;
  SharedFloats weights_out;
  BlockSlots slots_in;
  BlockSlots slots_out;
  // Whether a reader waits for the weights, and reads them as soon as they are committed.
  bool awaited = true;
};

// The weight of one contribution in an update.
struct ContributionWeight {
  // The factor on its trained elements. An elastic update has no factor.
  float trained = 0;
  // For averaged elements: its share of the update (all shares together are at most 1), and the
  // number of batches behind it.
  double averaged = 0;
  double batches = 0;
};
using ContributionWeights = absl::InlinedVector<ContributionWeight, 1>;

// The caller serialises the calls for one block by holding that block's lock
// (server/shard/shard.h). Begin and Run need no lock, but for each block the caller lets only one
// thread run them at a time. Until Commit others may read the block, and nothing writes it.
// Different blocks are independent.
class BlockStore {
 public:
  struct Options {
    // The number of leading elements of the model that are trained, and how the others are
    // averaged.
    uint64_t trained = 0;
    std::vector<AveragedElements> averaged = {};
    // How the step differs among the trained elements (common/update/factors.h).
    std::vector<UpdatePart> parts = {};
    // Whether the rule is the elastic centre's.
    bool elastic = false;
    // Whether the version before the newest stays readable (sync).
    bool keep_previous = false;
    // The memory for weights, so that workers on this host can read them in place. Null: the heap.
    std::shared_ptr<SharedArena> memory = nullptr;
    // The memory for optimizer slots, so that the replica's server on this host can read them.
    // Null: the heap.
    std::shared_ptr<SharedArena> slot_memory = nullptr;
  };

  BlockStore(const BlockLayout& layout, uint32_t server, std::unique_ptr<UpdateRule> rule,
             const Options& options);

  // Whether the block is one of this server's, by its number in the model.
  bool Has(uint32_t block) const;
  ElementRange Range(uint32_t block) const { return layout_.Range(block); }
  // The number of leading elements of the block that are trained.
  size_t TrainedIn(uint32_t block) const;
  const BlockLayout& layout() const { return layout_; }
  uint32_t server() const { return server_; }
  // Names of the slots, in the order of BlockValues::slots.
  const std::vector<std::string>& slot_names() const { return slot_names_; }

  // Sets the block's weights, and the slots to the rule's start values.
  void Set(uint32_t block, const FloatPayload& weights);
  // Memory of the right size for loading weights or an optimizer slot from a checkpoint, and
  // setting the block's values from there.
  SharedFloats Allocate(uint32_t block) const;
  SharedFloats AllocateSlot(uint32_t block) const;
  void Set(uint32_t block, BlockValues values);
  // Sets the previous version; with keep_previous only.
  void SetPrevious(uint32_t block, SharedFloats weights);

  // References to the current values. Empty before the block has values.
  BlockValues Current(uint32_t block) const;
  SharedFloats CurrentWeights(uint32_t block) const;
  // The moving average of the weights. Only if the rule keeps one.
  bool keeps_average() const { return rule_->average_slot().has_value(); }
  SharedFloats CurrentAverage(uint32_t block) const;
  // With keep_previous only. Empty before the first update.
  SharedFloats PreviousWeights(uint32_t block) const;

  // The three parts of an update. Begin chooses the memory and Run computes, both without the
  // caller's lock. Nothing changes before Commit. Run returns false if the result is not finite
  // (common/update/apply.h); the write must then be dropped.
  BlockWrite Begin(uint32_t block) const;
  // `rates` are the factors on the learning rate of the trained elements. Empty: 1.
  bool Run(uint32_t block, const BlockWrite& write,
           std::span<const FloatPayload* const> contributions,
           std::span<const ContributionWeight> weights, const UpdateStep& step,
           std::span<const UpdatePart> rates = {}) const;
  void Commit(uint32_t block, BlockWrite write);
  // Makes an update that changes nothing: the next version has the same values.
  void Skip(uint32_t block);

 private:
  // Different threads update neighbouring blocks, so each block has its own cache line.
  struct alignas(64) Block {
    SharedFloats current;
    SharedFloats previous;
    BlockSlots slots;
  };

  Block& At(uint32_t block) { return blocks_[block / layout_.servers()]; }
  const Block& At(uint32_t block) const { return blocks_[block / layout_.servers()]; }

  const BlockLayout layout_;
  const uint32_t server_;
  const std::unique_ptr<const UpdateRule> rule_;
  const Options options_;
  std::vector<std::string> slot_names_;
  // Whether the values of a block leave all caches between two updates of the block.
  const FarFromReaders far_;
  const BlockPools pools_;
  std::vector<Block> blocks_;
};

}  // namespace leeway
