// How the flat parameter vector is cut into blocks, and where each block lives.
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

// Elements of the vector, rising and above 0, with which a block begins anew, so that what is
// before and what is behind can be exchanged apart.
using BlockCuts = std::vector<uint64_t>;

// Equal blocks, the last one before each cut and before the end shorter; block i lives on server i
// mod S. A server with no block is legal. The values never depend on the layout, for every update
// is elementwise, unless they are compressed: docs/algorithms.md says which codecs see blocks.
class BlockLayout {
 public:
  // What int8 and sign encode together (common/codec/group_codec.h): such groups begin anew with
  // each block, so that they are the same wherever blocks of whole groups are cut.
  static constexpr uint64_t kGroupElements = 256;

  // Blocks of at most `block_bytes`, in multiples of 256 elements (1 KiB), below that of 16 (64
  // bytes, the smallest). Smaller where some of `servers` would otherwise have none, yet no smaller
  // than 1 KiB for that: the groups in which values are encoded are the same for any number of
  // servers. `total` elements, more than 0.
  static BlockLayout ForModel(uint64_t total, uint32_t servers, uint64_t block_bytes,
                              const BlockCuts& cuts = {});
  // The layout that a peer has announced. INVALID_ARGUMENT for zeros, more than 2^32 - 1 blocks,
  // blocks of more than 64 MiB, which no message holds, or cuts that do not rise within the vector.
  static absl::StatusOr<BlockLayout> FromWire(uint64_t total, uint32_t servers,
                                              uint64_t block_elements, const BlockCuts& cuts = {});

  uint64_t total() const { return total_; }
  uint32_t servers() const { return servers_; }
  // Of a block at most.
  uint64_t block_elements() const { return block_elements_; }
  uint32_t blocks() const { return blocks_; }

  ElementRange Range(uint32_t block) const;
  // The block that has the element.
  uint32_t BlockOf(uint64_t element) const;
  uint32_t ServerOf(uint32_t block) const { return block % servers_; }
  // Servers 0 up to this one have blocks; only a model with fewer blocks than servers leaves some
  // without.
  uint32_t ServersWithBlocks() const { return blocks_ < servers_ ? blocks_ : servers_; }
  // Blocks on one server, and the sum of their elements.
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
