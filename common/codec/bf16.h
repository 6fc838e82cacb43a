// Conversions between float32 and bf16, which is the upper half of a float32.
#pragma once

#include <bit>
#include <cstdint>

namespace leeway {

// The bits of the largest float32 that does not round to infinity.
inline constexpr uint32_t kBf16Limit = 0x7f7f7fff;

// Rounds to nearest, ties to even. The value's magnitude must not be above the limit.
inline uint16_t ToBf16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

inline float FromBf16(uint16_t half) {
  return std::bit_cast<float>(static_cast<uint32_t>(half) << 16);
}

inline bool IsFiniteBf16(uint16_t half) { return (half & 0x7f80u) != 0x7f80u; }

}  // namespace leeway
