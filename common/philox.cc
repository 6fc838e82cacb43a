#include "common/philox.h"

#include <cmath>

#include "common/philox_block.h"

namespace leeway {
namespace {

// The finaliser of SplitMix64 (Steele, Lea, Flood 2014). It spreads the keys over 64 bits.
uint64_t Mix(uint64_t z) {
  z += 0x9e3779b97f4a7c15ULL;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

constexpr double kTwoPi = 6.283185307179586;

}  // namespace

std::array<uint32_t, 4> Philox4x32(std::array<uint32_t, 4> c, std::array<uint32_t, 2> k) {
  uint32_t words[4] = {c[0], c[1], c[2], c[3]};
  PhiloxRounds(words, k[0], k[1]);
  return {words[0], words[1], words[2], words[3]};
}

RandomStream::RandomStream(uint64_t seed, RandomPurpose purpose,
                           std::initializer_list<uint64_t> keys)
    : key_{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)},
      stream_(Mix(static_cast<uint64_t>(purpose))) {
  for (uint64_t key : keys) stream_ = Mix(stream_ ^ key);
}

uint32_t RandomStream::NextU32() {
  if (used_ == 4) {
    words_ = Philox4x32({static_cast<uint32_t>(block_), static_cast<uint32_t>(block_ >> 32),
                         static_cast<uint32_t>(stream_), static_cast<uint32_t>(stream_ >> 32)},
                        key_);
    ++block_;
    used_ = 0;
  }
  return words_[used_++];
}

uint64_t RandomStream::NextU64() {
  const uint64_t low = NextU32();
  return low | uint64_t{NextU32()} << 32;
}

uint64_t RandomStream::Below(uint64_t bound) {
  unsigned __int128 product = static_cast<unsigned __int128>(NextU64()) * bound;
  if (static_cast<uint64_t>(product) < bound) {
    const uint64_t threshold = -bound % bound;
    while (static_cast<uint64_t>(product) < threshold) {
      product = static_cast<unsigned __int128>(NextU64()) * bound;
    }
  }
  return static_cast<uint64_t>(product >> 64);
}

double RandomStream::Uniform() { return static_cast<double>(NextU64() >> 11) * 0x1.0p-53; }

double RandomStream::Normal() {
  const double radius = std::sqrt(-2.0 * std::log(1.0 - Uniform()));
  return radius * std::cos(kTwoPi * Uniform());
}

double RandomStream::Gamma(double shape) {
  if (shape < 1.0) return Gamma(shape + 1.0) * std::pow(1.0 - Uniform(), 1.0 / shape);
  const double d = shape - 1.0 / 3.0;
  const double c = 1.0 / std::sqrt(9.0 * d);
  while (true) {
    const double x = Normal();
    const double v = (1.0 + c * x) * (1.0 + c * x) * (1.0 + c * x);
    if (v <= 0.0) continue;
    const double u = 1.0 - Uniform();
    if (std::log(u) < 0.5 * x * x + d - d * v + d * std::log(v)) return d * v;
  }
}

}  // namespace leeway
