// Memory for the values of a model's blocks. All blocks have the same size, with two exceptions:
// the last block of the model, and the last block before each element at which a block must begin.
#pragma once

#include <cstdint>
#include <map>
#include <memory>

#include "common/blocks.h"
#include "common/shm/shared_memory.h"
#include "server/store/shared_floats.h"

namespace leeway {

// Thread-safe.
class BlockPools {
 public:
  // Weights come from `memory` and optimizer slots from `slot_memory`. If an arena is null, the
  // heap is used instead.
  BlockPools(const BlockLayout& layout, const std::shared_ptr<SharedArena>& memory,
             const std::shared_ptr<SharedArena>& slot_memory)
      : layout_(layout) {
    for (uint32_t block = 0; block < layout.blocks(); ++block) {
      Pools& pools = pools_[layout.Range(block).count];
      if (pools.weights != nullptr) continue;
      pools = {FloatPool::Make(layout.Range(block).count, memory),
               FloatPool::Make(layout.Range(block).count, slot_memory)};
    }
  }

  // Returns a buffer of the block's size. The contents are undefined.
  SharedFloats Weights(uint32_t block) const { return Of(block).weights->Take(); }
  SharedFloats Slot(uint32_t block) const { return Of(block).slots->Take(); }

 private:
  struct Pools {
    std::shared_ptr<FloatPool> weights, slots;
  };
  const Pools& Of(uint32_t block) const { return pools_.at(layout_.Range(block).count); }

  const BlockLayout layout_;
  // The pools by the number of elements of a block.
  std::map<uint64_t, Pools> pools_;
};

}  // namespace leeway
