// Counter-based random numbers. Each draw of a job is a pure function of (seed, stream, index), so
// a restarted worker draws the same numbers as the process that it replaces.
//
// Philox4x32-10: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3" (SC
// 2011). The standard library's distributions are not used, because their results differ between
// libraries.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <utility>
#include <vector>

namespace leeway {

// Returns one Philox4x32-10 block: four words from a 128-bit counter and a 64-bit key.
std::array<uint32_t, 4> Philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

// The purpose of a stream of draws; the comment of a purpose gives the key of its streams. Streams
// with different purposes never overlap.
enum class RandomPurpose : uint32_t {
  kShuffle = 1,     // {epoch, rank}
  kPartition = 2,   // {class or file}
  kInitialize = 3,  // {tensor}
  kDropout = 4,     // {step, rank, layer}
  kAugment = 5,     // {step, rank}
  kGenerate = 6,    // {split, what}
  kHoldout = 7,     // {file}
  kEmulate = 8,     // {step, rank}
  kRetry = 10,      // {rank, incarnation, call}: when to retry; does not affect results
  kMix = 11,        // {step, rank}
  kGroups = 12,     // {clock}: the groups of gossip
  kPartner = 13,    // {clock, rank, attempt}: whom a worker of gossip meets
};

// A stream of draws, identified by the seed, a purpose and a key. Cheap to construct, copyable, not
// thread-safe.
class RandomStream {
 public:
  RandomStream(uint64_t seed, RandomPurpose purpose, std::initializer_list<uint64_t> keys = {});

  uint32_t NextU32();
  uint64_t NextU64();
  // Draws from the uniform distribution over the whole numbers in [0, bound), without bias (Lemire
  // 2019). bound > 0.
  uint64_t Below(uint64_t bound);
  // Draws from the uniform distribution over [0, 1), with 53 bits.
  double Uniform();
  // Draws from the standard normal distribution (Box and Muller 1958).
  double Normal();
  // Draws from Gamma(shape, 1), where shape > 0 (Marsaglia and Tsang 2000).
  double Gamma(double shape);

  // Permutes the values at random (Fisher-Yates).
  template <typename T>
  void Shuffle(std::vector<T>& values) {
    for (size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[Below(i)]);
  }

 private:
  std::array<uint32_t, 2> key_;
  uint64_t stream_;
  uint64_t block_ = 0;
  std::array<uint32_t, 4> words_{};
  int used_ = 4;
};

}  // namespace leeway
