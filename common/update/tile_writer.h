// Writes the results of an update, the next weights and optimizer slots, tile by tile.
#pragma once

#include <cstddef>
#include <span>

#include "common/update/rule.h"

namespace leeway {

// Which of the results nobody reads before they have left all caches.
struct FarFromReaders {
  bool weights = false;
  bool slots = false;
};

// Writes each tile to its place. A far tile goes past the caches: the rule writes a short tile that
// stays in the first level, and from there streaming stores write it. They fetch no line and evict
// nothing that is still needed. Not thread-safe. Lives on the stack, a few KiB.
class TileWriter {
 public:
  // No rule has more: a plugin's three, the average and the count of steps.
  static constexpr size_t kMaxSlots = 5;
  // Elements of a tile at most, where anything is far. A multiple of a group of encodings.
  static constexpr size_t kFarTile = 256;

  TileWriter(float* weights, std::span<float* const> slots, FarFromReaders far);
  // Everything is written and visible to threads that are told so afterwards.
  ~TileWriter();
  TileWriter(const TileWriter&) = delete;
  TileWriter& operator=(const TileWriter&) = delete;

  bool far() const { return far_weights_ || far_slots_; }
  // Says where the rule must write elements [offset, offset + tile.count).
  void Begin(size_t offset, UpdateTile& tile);
  // It has.
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
