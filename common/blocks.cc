#include "common/blocks.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"

namespace leeway {
namespace {

// The number of floats in a cache line. Blocks are multiples of it, so that two blocks never share
// a cache line.
constexpr uint64_t kElementsAlign = 16;
constexpr uint64_t kBlockElementsMax = (64 << 20) / sizeof(float);

uint64_t CeilDivide(uint64_t a, uint64_t b) { return a / b + (a % b != 0); }
uint64_t RoundUp(uint64_t a, uint64_t unit) { return CeilDivide(a, unit) * unit; }

}  // namespace

BlockLayout::BlockLayout(uint64_t total, uint32_t servers, uint64_t block_elements)
    : total_(total),
      servers_(servers),
      block_elements_(block_elements),
      blocks_(static_cast<uint32_t>(CeilDivide(total, block_elements))) {}

BlockLayout BlockLayout::ForModel(uint64_t total, uint32_t servers, uint64_t block_bytes) {
  const uint64_t most = std::max<uint64_t>(block_bytes / sizeof(float), kElementsAlign);
  const uint64_t wanted = most - most % (most < kGroupElements ? kElementsAlign : kGroupElements);
  const uint64_t share = RoundUp(CeilDivide(total, servers), kGroupElements);
  const uint64_t fewest = CeilDivide(total, std::numeric_limits<uint32_t>::max());
  const uint64_t elements = std::max(std::min(wanted, share), RoundUp(fewest, kElementsAlign));
  return BlockLayout(total, servers, elements);
}

absl::StatusOr<BlockLayout> BlockLayout::FromWire(uint64_t total, uint32_t servers,
                                                  uint64_t block_elements) {
  if (total == 0 || servers == 0 || block_elements == 0) {
    return absl::InvalidArgumentError(absl::StrCat("block layout: total ", total, ", servers ",
                                                   servers, " and block_elements ", block_elements,
                                                   " must all be positive"));
  }
  if (CeilDivide(total, block_elements) > std::numeric_limits<uint32_t>::max()) {
    return absl::InvalidArgumentError(absl::StrCat("block layout: ", total,
                                                   " elements in blocks of ", block_elements,
                                                   " make more than 2^32 - 1 blocks"));
  }
  if (block_elements > kBlockElementsMax) {
    return absl::InvalidArgumentError(absl::StrCat("block layout: block_elements ", block_elements,
                                                   " is more than the ", kBlockElementsMax,
                                                   " (64 MiB) that a message may carry"));
  }
  return BlockLayout(total, servers, block_elements);
}

ElementRange BlockLayout::Range(uint32_t block) const {
  const uint64_t offset = block * block_elements_;
  return {offset, std::min(block_elements_, total_ - offset)};
}

uint32_t BlockLayout::BlocksOn(uint32_t server) const {
  return server < blocks_ ? (blocks_ - server - 1) / servers_ + 1 : 0;
}

uint64_t BlockLayout::ElementsOn(uint32_t server) const {
  const uint64_t blocks = BlocksOn(server);
  if (blocks == 0) return 0;
  const bool has_last = ServerOf(blocks_ - 1) == server;
  const uint64_t missing = has_last ? block_elements_ - Range(blocks_ - 1).count : 0;
  return blocks * block_elements_ - missing;
}

}  // namespace leeway
