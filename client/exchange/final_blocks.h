// Tells which blocks of a contribution may leave.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "client/calls/block_range.h"
#include "common/blocks.h"

namespace leeway {

// Counts a contribution's elements as they become final, in any order. A block that several layers
// share is complete when the last of them is. Not thread-safe. The layout outlives it.
class FinalBlocks {
 public:
  explicit FinalBlocks(const BlockLayout& layout);

  // Starts a new contribution, of which no element is final.
  void Reset();
  // These elements are final; each is named once. Returns the blocks that they complete, in
  // ascending order, with neighbours joined.
  std::vector<BlockRange> Add(std::span<const ElementRange> elements);
  // The number of blocks that are not complete.
  uint32_t missing() const { return missing_blocks_; }

 private:
  const BlockLayout& layout_;
  // Missing elements by block.
  std::vector<uint64_t> missing_;
  uint32_t missing_blocks_ = 0;
};

// The blocks that hold some of the elements.
BlockRange BlocksOf(const BlockLayout& layout, const ElementRange& elements);
// The elements of `blocks`, which has at least one block.
ElementRange ElementsOf(const BlockLayout& layout, const BlockRange& blocks);

}  // namespace leeway
