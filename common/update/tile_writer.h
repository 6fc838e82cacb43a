// Writes the results of an update, the next weights and optimizer slots, tile by tile.
#pragma once

#include <cstddef>
#include <span>

#include "common/update/rule.h"

namespace leeway {

// Says which results are far: nobody reads them again before they have left all caches.
struct FarFromReaders {
  bool weights = false;
  bool slots = false;
};

// Writes each tile to its destination. A far tile bypasses the caches: the rule writes a short tile
// that stays in the first-level cache, and streaming stores copy this tile to its destination.
// Streaming stores fetch no line and evict nothing that is still needed. Not thread-safe. The
// writer is meant for the stack and takes a few KiB there.
class TileWriter {
 public:
  // The most slots of any rule: a plugin's three, the average and the count of steps.
  static constexpr size_t kMaxSlots = 5;
  // The most elements in a tile when any result is far. It is a multiple of a codec's group.
  static constexpr size_t kFarTile = 256;

  TileWriter(float* weights, std::span<float* const> slots, FarFromReaders far);
  // Makes all writes visible to threads that synchronize with this thread afterwards.
  ~TileWriter();
  TileWriter(const TileWriter&) = delete;
  TileWriter& operator=(const TileWriter&) = delete;

  bool far() const { return far_weights_ || far_slots_; }
  // Points `tile` to where the rule must write elements [offset, offset + tile.count).
  void Begin(size_t offset, UpdateTile& tile);
  // Copies far results to their destination, after the rule has written the tile.
  void End(size_t offset, size_t count);

 private:
  float* const weights_;
  const std::span<float* const> slots_;
  const bool far_weights_;
  const bool far_slots_;
  float* places_[kMaxSlots];
  alignas(64) float weights_tile_[kFarTile];
  alignas(64) float slot_tiles_[kMaxSlots][kFarTile];
};

}  // namespace leeway
