// The bytes of one server's blocks: weights and optimizer slots, copy-on-write. Knows no worker and
// no clock rule (server/core decides those).
//
// A version is immutable. An update writes the next one, weights and slots, into memory of a pool,
// and gives what it replaces back there once its last reader is done. So replies are never torn and
// never copied, a checkpoint is references, and an update that must not be is dropped with nothing
// to undo. The pool gives out first what came back last, so what is spare is a block for each
// update under way. (What it costs in memory traffic: docs/lab/performance.md, Update rules.)
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
  // What the workers have instead of the weights (server/store/reply_encoder.h); empty where there
  // is no such difference. The store does not keep it.
  SharedFloats shadow;
};

// The slots of one block; as many as the usual rules have need no memory of their own.
using BlockSlots = absl::InlinedVector<SharedFloats, 2>;

// An update between Begin and Commit.
struct BlockWrite {
  SharedFloats weights_in;
  SharedFloats weights_out;
  BlockSlots slots_in;
  BlockSlots slots_out;
  // Somebody is there who reads the weights as soon as they are committed.
  bool awaited = true;
};

// What one contribution counts for in an update.
struct ContributionWeight {
  // The factor of its trained elements; an elastic update has none.
  float trained = 0;
  // Of averaged elements: its share of the update, of all contributions 1 at most, and the batches
  // behind it.
  double averaged = 0;
  double batches = 0;
};
using ContributionWeights = absl::InlinedVector<ContributionWeight, 1>;

// Calls for one block must be serialised by the caller (server/shard/shard.h holds that block's
// lock), but for Begin and Run, which the caller grants to one thread at a time a block: until
// Commit others may read the block, and nobody writes it. Different blocks are independent.
class BlockStore {
 public:
  struct Options {
    // How many leading elements of the model are trained, and how the rest is averaged.
    uint64_t trained = 0;
    std::vector<AveragedElements> averaged = {};
    // How the step differs among the trained elements (common/update/factors.h).
    std::vector<UpdatePart> parts = {};
    // The rule is the elastic centre's.
    bool elastic = false;
    // The version before the newest stays readable (sync).
    bool keep_previous = false;
    // Where weights lie, so that workers on this host can read them in place; null: on the heap.
    std::shared_ptr<SharedArena> memory = nullptr;
    // Where optimizer slots lie, so that the replica's server on this host can; null: on the heap.
    std::shared_ptr<SharedArena> slot_memory = nullptr;
  };

  BlockStore(const BlockLayout& layout, uint32_t server, std::unique_ptr<UpdateRule> rule,
             const Options& options);

  // Blocks of this server, by their number in the model.
  bool Has(uint32_t block) const;
  ElementRange Range(uint32_t block) const { return layout_.Range(block); }
  // Leading elements of the block that are trained.
  size_t TrainedIn(uint32_t block) const;
  const BlockLayout& layout() const { return layout_; }
  uint32_t server() const { return server_; }
  // Names of the slots, in the order of BlockValues::slots.
  const std::vector<std::string>& slot_names() const { return slot_names_; }

  // Gives the block its values: slots as the rule starts them.
  void Set(uint32_t block, const FloatPayload& weights);
  // Memory of the right size to load a checkpoint into (weights; optimizer slots), and the block's
  // values from there.
  SharedFloats Allocate(uint32_t block) const;
  SharedFloats AllocateSlot(uint32_t block) const;
  void Set(uint32_t block, BlockValues values);
  // The version before that one; with keep_previous only.
  void SetPrevious(uint32_t block, SharedFloats weights);

  // References to what is there. Before the block has values: empty.
  BlockValues Current(uint32_t block) const;
  SharedFloats CurrentWeights(uint32_t block) const;
  // The moving average of the weights; only where the rule keeps one.
  bool keeps_average() const { return rule_->average_slot().has_value(); }
  SharedFloats CurrentAverage(uint32_t block) const;
  // Whether an update may leave elements out: the rule does not count the updates of the block.
  bool may_skip() const { return !rule_->uses_number(); }
  // With keep_previous only; empty before the first update.
  SharedFloats PreviousWeights(uint32_t block) const;

  // An update in three parts. Begin chooses the memory and Run computes, both without the caller's
  // lock; nothing changes before Commit. Run is false where the result is not all finite
  // (common/update/apply.h): then the write is to be dropped.
  BlockWrite Begin(uint32_t block) const;
  // `rates`: what the step's learning rate is multiplied by in the trained elements, and which of
  // them stay as they are; none: 1.
  bool Run(uint32_t block, const BlockWrite& write,
           std::span<const FloatPayload* const> contributions,
           std::span<const ContributionWeight> weights, const UpdateStep& step,
           std::span<const UpdatePart> rates = {}) const;
  void Commit(uint32_t block, BlockWrite write);
  // An update that changes nothing: the next version is the same values.
  void Skip(uint32_t block);

 private:
  // Neighbours are updated by different threads: each has its own cache line.
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
  // Between two updates of a block so much else is read and written that they leave all caches.
  const FarFromReaders far_;
  const BlockPools pools_;
  std::vector<Block> blocks_;
};

}  // namespace leeway
