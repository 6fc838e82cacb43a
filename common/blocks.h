// How the flat parameter vector is cut into blocks, and which server has each block.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"

namespace leeway {

// Elements [offset, offset + count) of the flat vector.
struct ElementRange {
  uint64_t offset = 0;
  uint64_t count = 0;
  uint64_t end() const { return offset + count; }
};

// Blocks of equal size, except that the last one may be shorter. Block i is on server i mod S. A
// server may have no block. Values never depend on the layout, because each update is elementwise.
// The exception is compression: docs/algorithms.md says which codecs depend on blocks.
class BlockLayout {
 public:
  // The number of elements that int8 and sign encode together (common/codec/group_codec.h). Each
  // block begins a new group, so the groups are the same in all layouts whose blocks are whole
  // groups.
  static constexpr uint64_t kGroupElements = 256;

  // Makes blocks of at most `block_bytes`, in multiples of 256 elements (1 KiB), or of 16 elements
  // (64 bytes, the smallest block) if `block_bytes` is below 1 KiB. Blocks are smaller if some of
  // `servers` would otherwise have none, but for this reason no smaller than 1 KiB: so the groups
  // in which values are encoded are the same for any number of servers. `total`: the number of
  // elements, above 0.
  static BlockLayout ForModel(uint64_t total, uint32_t servers, uint64_t block_bytes);
  // Returns the layout that a peer has announced. INVALID_ARGUMENT for zeros, more than 2^32 - 1
  // blocks, or blocks of more than 64 MiB, which do not fit in a message.
  static absl::StatusOr<BlockLayout> FromWire(uint64_t total, uint32_t servers,
                                              uint64_t block_elements);

  uint64_t total() const { return total_; }
  uint32_t servers() const { return servers_; }
  uint64_t block_elements() const { return block_elements_; }
  uint32_t blocks() const { return blocks_; }

  ElementRange Range(uint32_t block) const;
  uint32_t ServerOf(uint32_t block) const { return block % servers_; }
  // Servers 0 to N - 1 have blocks, where N is the result. It is below the number of servers only
  // if the model has fewer blocks than servers.
  uint32_t ServersWithBlocks() const { return blocks_ < servers_ ? blocks_ : servers_; }
  // The number of blocks on one server, and the sum of their elements.
  uint32_t BlocksOn(uint32_t server) const;
  uint64_t ElementsOn(uint32_t server) const;

 private:
  BlockLayout(uint64_t total, uint32_t servers, uint64_t block_elements);

  uint64_t total_;
  uint32_t servers_;
  uint64_t block_elements_;
  uint32_t blocks_;
};

}  // namespace leeway
