// Finds the blocks of a contribution that are complete, so that they may be sent.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "client/calls/block_range.h"
#include "common/blocks.h"

namespace leeway {

// Counts a contribution's elements as they become final, in any order. A block that several layers
// share is complete when all of its elements are final. Not thread-safe. The layout outlives the
// object.
class FinalBlocks {
 public:
  explicit FinalBlocks(const BlockLayout& layout);

  // Starts a new contribution, of which no element is final.
  void Reset();
  // Counts `elements` as final. No element may be counted twice. Returns the blocks that this
  // completes, in ascending order, with neighbours joined into one range.
  std::vector<BlockRange> Add(std::span<const ElementRange> elements);
  // The number of blocks that are not complete.
  uint32_t missing() const { return missing_blocks_; }

 private:
  const BlockLayout& layout_;
  // By block: the number of elements that are not final yet.
  std::vector<uint64_t> missing_;
  uint32_t missing_blocks_ = 0;
};

}  // namespace leeway
