// Where a rule's optimizer slots go, which nobody reads before the same block's next update.
#pragma once

#include <cstddef>
#include <span>

namespace leeway {

// To their place; or, where that is far, past the caches: the rule writes a short tile that stays
// in the first level, and from there they leave by stores that fetch no line and push out nothing
// that somebody still needs. Not thread-safe. Lies on the stack, a few KiB.
class SlotWriter {
 public:
  // No rule has more.
  static constexpr size_t kMaxSlots = 4;
  // Elements of a tile at most, where slots are far. A multiple of a group of encodings.
  static constexpr size_t kFarTile = 256;

  SlotWriter(std::span<float* const> out, bool far) : out_(out), far_(far && !out.empty()) {}
  // All is written, for whoever is told so afterwards.
  ~SlotWriter();
  SlotWriter(const SlotWriter&) = delete;
  SlotWriter& operator=(const SlotWriter&) = delete;

  bool far() const { return far_; }
  // By slot, where elements [offset, offset + n) are to be written.
  float* const* Begin(size_t offset);
  // `count` of them have been.
  void End(size_t count);

 private:
  const std::span<float* const> out_;
  const bool far_;
  size_t offset_ = 0;
  float* places_[kMaxSlots];
  alignas(64) float tiles_[kMaxSlots][kFarTile];
};

}  // namespace leeway
