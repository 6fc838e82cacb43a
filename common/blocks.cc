#include "common/blocks.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"

namespace leeway {
namespace {

// The number of floats in a cache line. Block sizes are multiples of this number, so that two
// blocks never share a cache line.
constexpr uint64_t kElementsAlign = 16;
constexpr uint64_t kBlockElementsMax = (64 << 20) / sizeof(float);

uint64_t CeilDivide(uint64_t a, uint64_t b) { return a / b + (a % b != 0); }
uint64_t RoundUp(uint64_t a, uint64_t unit) { return CeilDivide(a, unit) * unit; }

}  // namespace

BlockLayout::BlockLayout(uint64_t total, uint32_t shards, uint64_t block_elements,
                         const BlockCuts& cuts)
    : total_(total), shards_(shards), block_elements_(block_elements) {
  uint64_t offset = 0;
  const auto add = [&](uint64_t end) {
    stretches_.push_back({offset, end, blocks_});
    blocks_ += static_cast<uint32_t>(CeilDivide(end - offset, block_elements));
    offset = end;
  };
  for (const uint64_t cut : cuts) add(cut);
  add(total);
}

BlockLayout BlockLayout::ForModel(uint64_t total, uint32_t shards, uint64_t block_bytes,
                                  const BlockCuts& cuts) {
  const uint64_t most = std::max<uint64_t>(block_bytes / sizeof(float), kElementsAlign);
  const uint64_t wanted = most - most % (most < kGroupElements ? kElementsAlign : kGroupElements);
  const uint64_t share = RoundUp(CeilDivide(total, shards), kGroupElements);
  const uint64_t fewest = CeilDivide(total, std::numeric_limits<uint32_t>::max());
  const uint64_t elements = std::max(std::min(wanted, share), RoundUp(fewest, kElementsAlign));
  return BlockLayout(total, shards, elements, cuts);
}

absl::StatusOr<BlockLayout> BlockLayout::FromWire(uint64_t total, uint32_t shards,
                                                  uint64_t block_elements, const BlockCuts& cuts) {
  if (total == 0 || shards == 0 || block_elements == 0) {
    return absl::InvalidArgumentError(absl::StrCat("block layout: total ", total, ", servers ",
                                                   shards, " and block_elements ", block_elements,
                                                   " must all be positive"));
  }
  uint64_t before = 0;
  for (const uint64_t cut : cuts) {
    if (cut <= before || cut >= total) {
      return absl::InvalidArgumentError(
          absl::StrCat("block layout: the cut at element ", cut, " must be after element ", before,
                       " and before the end of the model, element ", total));
    }
    before = cut;
  }
  if (CeilDivide(total, block_elements) + cuts.size() > std::numeric_limits<uint32_t>::max()) {
    return absl::InvalidArgumentError(absl::StrCat("block layout: ", total,
                                                   " elements in blocks of ", block_elements,
                                                   " make more than 2^32 - 1 blocks"));
  }
  if (block_elements > kBlockElementsMax) {
    return absl::InvalidArgumentError(absl::StrCat("block layout: block_elements ", block_elements,
                                                   " is more than the ", kBlockElementsMax,
                                                   " (64 MiB) that a message may carry"));
  }
  return BlockLayout(total, shards, block_elements, cuts);
}

ElementRange BlockLayout::Range(uint32_t block) const {
  const auto next = std::upper_bound(
      stretches_.begin() + 1, stretches_.end(), block,
      [](uint32_t number, const Stretch& stretch) { return number < stretch.first_block; });
  const Stretch& stretch = *(next - 1);
  const uint64_t offset = stretch.offset + (block - stretch.first_block) * block_elements_;
  return {offset, std::min(block_elements_, stretch.end - offset)};
}

uint32_t BlockLayout::BlockOf(uint64_t element) const {
  const auto next = std::upper_bound(
      stretches_.begin() + 1, stretches_.end(), element,
      [](uint64_t offset, const Stretch& stretch) { return offset < stretch.offset; });
  const Stretch& stretch = *(next - 1);
  return stretch.first_block + static_cast<uint32_t>((element - stretch.offset) / block_elements_);
}

uint32_t BlockLayout::BlocksOn(uint32_t shard) const {
  return shard < blocks_ ? (blocks_ - shard - 1) / shards_ + 1 : 0;
}

uint64_t BlockLayout::ElementsOn(uint32_t shard) const {
  uint64_t elements = BlocksOn(shard) * block_elements_;
  // Subtract the elements that are missing in short last blocks before a cut or the end.
  for (const Stretch& stretch : stretches_) {
    const uint32_t last = BlockOf(stretch.end - 1);
    if (ShardOf(last) == shard) elements -= block_elements_ - Range(last).count;
  }
  return elements;
}

}  // namespace leeway
