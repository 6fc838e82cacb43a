// Memory for the values of a model's blocks. All blocks have the same size, except that the last
// block may be smaller.
#pragma once

#include <cstdint>
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
      : last_(layout.blocks() - 1),
        weights_(FloatPool::Make(layout.Range(0).count, memory)),
        last_weights_(FloatPool::Make(layout.Range(last_).count, memory)),
        slots_(FloatPool::Make(layout.Range(0).count, slot_memory)),
        last_slots_(FloatPool::Make(layout.Range(last_).count, slot_memory)) {}

  // Returns a buffer of the block's size. The contents are undefined.
  SharedFloats Weights(uint32_t block) const {
    return block == last_ ? last_weights_->Take() : weights_->Take();
  }
  SharedFloats Slot(uint32_t block) const {
    return block == last_ ? last_slots_->Take() : slots_->Take();
  }

 private:
  const uint32_t last_;
  const std::shared_ptr<FloatPool> weights_, last_weights_, slots_, last_slots_;
};

}  // namespace leeway
