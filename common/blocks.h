// How the flat parameter vector is cut into blocks, and which server has each block.
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

// Elements of the vector with which a block begins anew, so that the elements before and after can
// be exchanged separately. They rise, and are above 0.
using BlockCuts = std::vector<uint64_t>;

// Blocks of equal size, except that the last block before a cut and before the end may be shorter.
// Block i is on server i mod S. A server may have no block. Without compression the values do not
// depend on the layout, because each update is elementwise. docs/algorithms.md says which codecs
// depend on blocks.
class BlockLayout {
 public:
  // The number of elements that int8 and sign encode together (common/codec/group_codec.h). Each
  // block begins a new group, so the groups are the same in all layouts whose blocks are whole
  // groups.
  static constexpr uint64_t kGroupElements = 256;

  // Makes blocks of at most `block_bytes`, in multiples of 256 elements (1 KiB), or of 16 elements
  // (64 bytes, the smallest block) if `block_bytes` is below 1 KiB. Blocks are smaller if some of
  // the `servers` would otherwise have no block. They do not become smaller than 1 KiB for this
  // reason, so that the groups in which values are encoded are the same for any number of servers.
  // `total` is the number of elements, above 0.
  static BlockLayout ForModel(uint64_t total, uint32_t servers, uint64_t block_bytes,
                              const BlockCuts& cuts = {});
  // Returns the layout that a peer has announced. Returns INVALID_ARGUMENT if a number is 0, if
  // there are more than 2^32 - 1 blocks, if a block has more than 64 MiB and so does not fit in a
  // message, or if the cuts do not rise within the vector.
  static absl::StatusOr<BlockLayout> FromWire(uint64_t total, uint32_t servers,
                                              uint64_t block_elements, const BlockCuts& cuts = {});

  uint64_t total() const { return total_; }
  uint32_t servers() const { return servers_; }
  // The most elements in a block.
  uint64_t block_elements() const { return block_elements_; }
  uint32_t blocks() const { return blocks_; }

  ElementRange Range(uint32_t block) const;
  // The block that has the element.
  uint32_t BlockOf(uint64_t element) const;
  uint32_t ServerOf(uint32_t block) const { return block % servers_; }
  // Returns the number of servers that have blocks. These are the first servers. The result is
  // below the number of servers only if the model has fewer blocks than servers.
  uint32_t ServersWithBlocks() const { return blocks_ < servers_ ? blocks_ : servers_; }
  // Return the number of blocks on one server, and the number of elements in these blocks.
  uint32_t BlocksOn(uint32_t server) const;
  uint64_t ElementsOn(uint32_t server) const;

 private:
  // From a cut up to the next one.
  struct Stretch {
    uint64_t offset = 0;
    uint64_t end = 0;
    uint32_t first_block = 0;
  };
  BlockLayout(uint64_t total, uint32_t servers, uint64_t block_elements, const BlockCuts& cuts);

  uint64_t total_;
  uint32_t servers_;
  uint64_t block_elements_;
  // At least one.
  std::vector<Stretch> stretches_;
  uint32_t blocks_ = 0;
};

}  // namespace leeway
