// Dropout masks. Philox4x32-10 (common/philox.h) is computed for eight counters at once.
#include <algorithm>
#include <array>
#include <cstdint>

#include "worker/compute/eigen/eigen_backend.h"
#include "worker/compute/eigen/vectors.h"

namespace leeway {
namespace {

constexpr size_t kLanes = 8;
constexpr size_t kWords = 4 * kLanes;
using Words = std::array<uint32_t, kLanes>;

// Sets words[4 * lane + j] to word j of the block with counter {first + lane, stream}.
void PhiloxBlocks(uint64_t first, const DropoutKey& key, std::array<uint32_t, kWords>& words) {
  Words c0, c1, c2, c3;
  for (size_t i = 0; i < kLanes; ++i) {
    c0[i] = static_cast<uint32_t>(first + i);
    c1[i] = static_cast<uint32_t>((first + i) >> 32);
    c2[i] = static_cast<uint32_t>(key.stream);
    c3[i] = static_cast<uint32_t>(key.stream >> 32);
  }
  uint32_t k0 = static_cast<uint32_t>(key.key);
  uint32_t k1 = static_cast<uint32_t>(key.key >> 32);
  for (int round = 0; round < 10; ++round) {
    for (size_t i = 0; i < kLanes; ++i) {
      const uint64_t a = uint64_t{0xD2511F53} * c0[i];
      const uint64_t b = uint64_t{0xCD9E8D57} * c2[i];
      c0[i] = static_cast<uint32_t>(b >> 32) ^ c1[i] ^ k0;
      c1[i] = static_cast<uint32_t>(b);
      c2[i] = static_cast<uint32_t>(a >> 32) ^ c3[i] ^ k1;
      c3[i] = static_cast<uint32_t>(a);
    }
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  for (size_t i = 0; i < kLanes; ++i) {
    words[4 * i] = c0[i];
    words[4 * i + 1] = c1[i];
    words[4 * i + 2] = c2[i];
    words[4 * i + 3] = c3[i];
  }
}

}  // namespace

void EigenBackend::DropoutForward(size_t count, float rate, const DropoutKey& key, const float* x,
                                  float* mask, float* y) {
  const auto threshold = static_cast<uint64_t>(static_cast<double>(rate) * 0x1p32);
  const float scale = 1.0f / (1.0f - rate);
  // Each thread computes whole groups of words.
  pool_.For((count + kWords - 1) / kWords, 1 << 8, [=](size_t begin, size_t end, uint32_t) {
    std::array<uint32_t, kWords> words;
    for (size_t group = begin; group < end; ++group) {
      PhiloxBlocks(group * kLanes, key, words);
      const size_t start = group * kWords;
      const size_t size = std::min(kWords, count - start);
      for (size_t i = 0; i < size; ++i) mask[start + i] = words[i] < threshold ? 0.0f : scale;
      MapElements(
          start, start + size, y, [](float x, float factor) { return x * factor; }, x, mask);
    }
  });
}

}  // namespace leeway
