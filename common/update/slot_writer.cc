#include "common/update/slot_writer.h"

#include <algorithm>
#include <cstdint>

#include "common/update/loop.h"

#if defined(__AVX__)
#include <immintrin.h>
#endif

namespace leeway {
namespace {

// How many from the front are stored past the caches: whole lines.
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

SlotWriter::~SlotWriter() {
  if (far_) WaitForLines();
}

float* const* SlotWriter::Begin(size_t offset) {
  offset_ = offset;
  for (size_t slot = 0; slot < out_.size(); ++slot) {
    places_[slot] = far_ ? tiles_[slot] : out_[slot] + offset;
  }
  return places_;
}

void SlotWriter::End(size_t count) {
  if (!far_) return;
  for (size_t slot = 0; slot < out_.size(); ++slot) {
    Stream(tiles_[slot], count, out_[slot] + offset_);
  }
}

}  // namespace leeway
