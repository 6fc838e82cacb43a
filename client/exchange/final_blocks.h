// Which blocks of a contribution may leave.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "client/calls/block_range.h"
#include "common/blocks.h"

namespace leeway {

// Counts a contribution's elements as they become final, in any order: a block that several layers
// share is complete when the last of them is. Not thread-safe; the layout outlives it.
class FinalBlocks {
 public:
  explicit FinalBlocks(const BlockLayout& layout);

  // A new contribution: no element is final.
  void Reset();
  // These are, each named once. The blocks that they complete, ascending, neighbours together.
  std::vector<BlockRange> Add(std::span<const ElementRange> elements);
  // Blocks that are not complete.
  uint32_t missing() const { return missing_blocks_; }

 private:
  const BlockLayout& layout_;
  // Elements by block.
  std::vector<uint64_t> missing_;
  uint32_t missing_blocks_ = 0;
};

// The blocks that hold some of the elements.
BlockRange BlocksOf(const BlockLayout& layout, const ElementRange& elements);
// The elements of some blocks, at least one.
ElementRange ElementsOf(const BlockLayout& layout, const BlockRange& blocks);

}  // namespace leeway
