#include "exchange/final_blocks.h"

#include <algorithm>

namespace leeway {

FinalBlocks::FinalBlocks(const BlockLayout& layout) : layout_(layout), missing_(layout.blocks()) {
  Reset();
}

void FinalBlocks::Reset() {
  missing_blocks_ = layout_.blocks();
  for (uint32_t block = 0; block < missing_blocks_; ++block) {
    missing_[block] = layout_.Range(block).count;
  }
}

std::vector<BlockRange> FinalBlocks::Add(std::span<const ElementRange> elements) {
  std::vector<uint32_t> complete;
  for (const ElementRange& range : elements) {
    const BlockRange touched = BlocksOf(layout_, range);
    for (uint32_t block = touched.first; block < touched.first + touched.count; ++block) {
      const ElementRange whole = layout_.Range(block);
      missing_[block] -= std::min(whole.end(), range.end()) - std::max(whole.offset, range.offset);
      if (missing_[block] == 0) complete.push_back(block);
    }
  }
  missing_blocks_ -= static_cast<uint32_t>(complete.size());
  std::sort(complete.begin(), complete.end());
  std::vector<BlockRange> ranges;
  for (const uint32_t block : complete) {
    if (!ranges.empty() && ranges.back().first + ranges.back().count == block) {
      ++ranges.back().count;
    } else {
      ranges.push_back({block, 1});
    }
  }
  return ranges;
}

}  // namespace leeway
