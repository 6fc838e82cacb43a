// For an exchange that is spread over its clock: decides which blocks leave after which local step.
#pragma once

#include <algorithm>
#include <cstdint>

#include "client/calls/block_range.h"
#include "common/blocks.h"

namespace leeway {

// Divides the blocks into groups of neighbours. There are as many groups as steps in a clock, but
// not more than there are blocks. One group leaves after each step, or after every few steps. All
// groups have left when the clock's steps are done.
class SpreadPlan {
 public:
  SpreadPlan(const BlockLayout& layout, uint64_t steps_per_clock)
      : layout_(layout),
        groups_(std::clamp<uint64_t>(steps_per_clock, 1, std::max(layout.blocks(), 1u))) {}

  uint64_t groups() const { return groups_; }
  BlockRange Blocks(uint64_t group) const {
    const auto first = static_cast<uint32_t>(group * layout_.blocks() / groups_);
    const auto end = static_cast<uint32_t>((group + 1) * layout_.blocks() / groups_);
    return {first, end - first};
  }
  ElementRange Elements(uint64_t group) const {
    const BlockRange blocks = Blocks(group);
    const uint64_t first = layout_.Range(blocks.first).offset;
    return {first, layout_.Range(blocks.first + blocks.count - 1).end() - first};
  }
  // Returns how many of the clock's `steps` are done when the group leaves, from 1 to `steps`. A
  // clock may have fewer steps than usual.
  uint64_t LeavesAfter(uint64_t group, uint64_t steps) const {
    return std::max<uint64_t>(1, (group + 1) * steps / groups_);
  }

 private:
  const BlockLayout layout_;
  const uint64_t groups_;
};

}  // namespace leeway
