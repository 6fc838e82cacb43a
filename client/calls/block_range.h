// A range of the model's blocks.
#pragma once

#include <cstdint>

#include "common/blocks.h"

namespace leeway {

// The blocks [first, first + count).
struct BlockRange {
  uint32_t first = 0;
  uint32_t count = 0;
  bool operator==(const BlockRange&) const = default;
};

// All blocks, however many the model has.
inline constexpr BlockRange kAllBlocks{0, UINT32_MAX};

// Returns the blocks that hold some of the elements.
inline BlockRange BlocksOf(const BlockLayout& layout, const ElementRange& elements) {
  if (elements.count == 0) return {};
  const uint32_t first = layout.BlockOf(elements.offset);
  const uint32_t last = layout.BlockOf(elements.end() - 1);
  return {first, last - first + 1};
}

// Returns the elements of `blocks`, which has at least one block.
inline ElementRange ElementsOf(const BlockLayout& layout, const BlockRange& blocks) {
  const uint64_t first = layout.Range(blocks.first).offset;
  return {first, layout.Range(blocks.first + blocks.count - 1).end() - first};
}

}  // namespace leeway
