// Which blocks leave after which local step where an exchange is spread over its clock.
#pragma once

#include <algorithm>
#include <cstdint>

#include "client/calls/block_range.h"
#include "common/blocks.h"

namespace leeway {

// The blocks in as many groups of neighbours as a clock has steps, or as there are blocks: one
// group leaves after each step, or after each few. Every group has left when the clock's steps are
// done.
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
  // How many of the clock's `steps`, which may be fewer than usual, are done when the group leaves:
  // from 1 to `steps`.
  uint64_t LeavesAfter(uint64_t group, uint64_t steps) const {
    return std::max<uint64_t>(1, (group + 1) * steps / groups_);
  }

 private:
  const BlockLayout layout_;
  const uint64_t groups_;
};

}  // namespace leeway
