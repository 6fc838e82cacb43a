// Conversions between float32 and IEEE 754 half precision.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

namespace leeway {

// Rounds to nearest, ties to even. A magnitude above 65504, the largest half, becomes 65504.
inline uint16_t ToFp16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t magnitude = std::min(bits & 0x7fffffffu, 0x477fe000u);
  // Adding 1/2 leaves the magnitude in the low bits, as a multiple of 2^-24. That is the distance
  // between neighbouring subnormal halves.
  const uint32_t tiny =
      std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3f000000u;
  const uint32_t ordinary = (magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
  const uint32_t half = magnitude < 0x38800000u ? tiny : ordinary;
  return static_cast<uint16_t>(half | ((bits >> 16) & 0x8000u));
}

// Returns the value of a half, which must be finite. A multiplication adds 112 to the exponent.
// This is exact and also converts subnormal halves correctly.
inline float FromFp16(uint16_t half) {
  const float magnitude =
      std::bit_cast<float>(static_cast<uint32_t>(half & 0x7fffu) << 13) * 0x1p112f;
  return std::bit_cast<float>(std::bit_cast<uint32_t>(magnitude) |
                              (static_cast<uint32_t>(half & 0x8000u) << 16));
}

}  // namespace leeway
