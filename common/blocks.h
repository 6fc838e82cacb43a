// How the flat parameter vector is cut into blocks, and in which shard each block is.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"

namespace leeway {

// Elements [offset, offset + count) of the flat vector.
struct ElementRange {
  uint64_t offset = 0;
  uint64_t count = 0;
  uint64_t end() const { return offset + count; }
};

// The elements at which a new block must begin, so that the elements before and after such a cut
// can be exchanged separately. In ascending order, all above 0.
using BlockCuts = std::vector<uint64_t>;

// Blocks of equal size, except that the last block before a cut and before the end may be shorter.
// Block i is in shard i mod S. A shard may have no block. Without compression the values do not
// depend on the layout, because each update is elementwise. docs/algorithms.md says which codecs
// depend on blocks.
class BlockLayout {
 public:
  // The number of elements that int8 and sign encode together (common/codec/group_codec.h). Each
  // block begins a new group, so the groups are the same in all layouts whose blocks consist of
  // whole groups.
  static constexpr uint64_t kGroupElements = 256;

  // Makes blocks of at most `block_bytes`. A block's size is a multiple of 256 elements (1 KiB), or
  // of 16 elements (64 bytes, the smallest block) if `block_bytes` is below 1 KiB. Blocks become
  // smaller, down to 1 KiB, if a shard would otherwise have no block. Because of this limit, the
  // groups of encoded values do not depend on the number of shards. `total` is the number of
  // elements, above 0.
  static BlockLayout ForModel(uint64_t total, uint32_t shards, uint64_t block_bytes,
                              const BlockCuts& cuts = {});
  // Returns the layout that a peer has announced. Returns INVALID_ARGUMENT if a number is 0, if
  // there are more than 2^32 - 1 blocks, if a block has more than 64 MiB and so does not fit in a
  // message, or if the cuts do not rise within the vector.
  static absl::StatusOr<BlockLayout> FromWire(uint64_t total, uint32_t shards,
                                              uint64_t block_elements, const BlockCuts& cuts = {});

  uint64_t total() const { return total_; }
  uint32_t shards() const { return shards_; }
  // Returns the most elements in a block.
  uint64_t block_elements() const { return block_elements_; }
  uint32_t blocks() const { return blocks_; }

  ElementRange Range(uint32_t block) const;
  uint32_t BlockOf(uint64_t element) const;
  uint32_t ShardOf(uint32_t block) const { return block % shards_; }
  // Returns the number of shards that have blocks. These are the first shards. The result is below
  // the number of shards only if the model has fewer blocks than shards.
  uint32_t ShardsWithBlocks() const { return blocks_ < shards_ ? blocks_ : shards_; }
  // Return the number of blocks in one shard, and the number of elements in these blocks.
  uint32_t BlocksOn(uint32_t shard) const;
  uint64_t ElementsOn(uint32_t shard) const;

 private:
  // The blocks from one cut to the next.
  struct Stretch {
    uint64_t offset = 0;
    uint64_t end = 0;
    uint32_t first_block = 0;
  };
  BlockLayout(uint64_t total, uint32_t shards, uint64_t block_elements, const BlockCuts& cuts);

  uint64_t total_;
  uint32_t shards_;
  uint64_t block_elements_;
  // Has at least one stretch.
  std::vector<Stretch> stretches_;
  uint32_t blocks_ = 0;
};

}  // namespace leeway
