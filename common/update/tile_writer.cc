#include "common/update/tile_writer.h"

#include <algorithm>
#include <cstdint>

#include "common/update/loop.h"

#if defined(__AVX__)
#include <immintrin.h>
#endif

namespace leeway {
namespace {

// Stores whole cache lines, bypassing the caches. Returns the number of floats stored.
#if defined(__AVX__)
size_t StreamLines(const float* from, size_t count, float* to) {
  size_t i = 0;
  for (; i + kLineFloats <= count; i += kLineFloats) {
    _mm256_stream_ps(to + i, _mm256_loadu_ps(from + i));
    _mm256_stream_ps(to + i + 8, _mm256_loadu_ps(from + i + 8));
  }
  return i;
}
void WaitForLines() { _mm_sfence(); }
#else
size_t StreamLines(const float*, size_t, float*) { return 0; }
void WaitForLines() {}
#endif

void Stream(const float* from, size_t count, float* to) {
  const size_t misplaced = reinterpret_cast<uintptr_t>(to) / sizeof(float) % kLineFloats;
  const size_t head = std::min(count, (kLineFloats - misplaced) % kLineFloats);
  std::copy_n(from, head, to);
  const size_t streamed = head + StreamLines(from + head, count - head, to + head);
  std::copy(from + streamed, from + count, to + streamed);
}

}  // namespace

TileWriter::TileWriter(float* weights, std::span<float* const> slots, FarFromReaders far)
    : weights_(weights),
      slots_(slots),
      far_weights_(far.weights),
      far_slots_(far.slots && !slots.empty()) {}

TileWriter::~TileWriter() {
  if (far()) WaitForLines();
}

void TileWriter::Begin(size_t offset, UpdateTile& tile) {
  tile.weights_out = far_weights_ ? weights_tile_ : weights_ + offset;
  for (size_t slot = 0; slot < slots_.size(); ++slot) {
    places_[slot] = far_slots_ ? slot_tiles_[slot] : slots_[slot] + offset;
  }
  tile.slots_out = places_;
}

void TileWriter::End(size_t offset, size_t count) {
  if (far_weights_) Stream(weights_tile_, count, weights_ + offset);
  if (!far_slots_) return;
  for (size_t slot = 0; slot < slots_.size(); ++slot) {
    Stream(slot_tiles_[slot], count, slots_[slot] + offset);
  }
}

}  // namespace leeway
