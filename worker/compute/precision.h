// Rounds the factors of products (workers.precision). In each precision, the sums and results of
// products and all other values are float32.
//
// Rounding is to nearest, ties to even. The CPU and a GPU's kernels round with the same functions,
// so both get the same bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "common/host_device.h"

namespace leeway {

enum class Precision : uint8_t {
  // Factors are not rounded.
  kFp32,
  // 10 bits of mantissa, with the range of float32. A GPU rounds to this format itself, and may
  // break ties differently.
  kTf32,
  // bfloat16: 7 bits of mantissa, with the range of float32.
  kBf16,
  // IEEE half precision: 10 bits of mantissa. Values beyond 65504 become infinite, and values below
  // 2^-14 lose digits.
  kFp16,
};

constexpr const char* PrecisionName(Precision precision) {
  switch (precision) {
    case Precision::kTf32:
      return "tf32";
    case Precision::kBf16:
      return "bf16";
    case Precision::kFp16:
      return "fp16";
    case Precision::kFp32:
      break;
  }
  return "fp32";
}

// Returns true if a GPU's products read copies of the factors that have 16 bits for each value.
constexpr bool HasHalves(Precision precision) {
  return precision == Precision::kBf16 || precision == Precision::kFp16;
}

// Returns the number of bytes for these copies. A GPU's backend allocates them once, when it is
// made.
constexpr size_t FactorBytes(Precision precision) {
  return HasHalves(precision) ? size_t{64} << 20 : 0;
}

LEEWAY_HOST_DEVICE inline uint32_t FloatBits(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}
LEEWAY_HOST_DEVICE inline float FloatOfBits(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

// Rounds away the last kDropped bits of the mantissa. A NaN stays a NaN.
template <uint32_t kDropped>
LEEWAY_HOST_DEVICE inline float RoundMantissa(float value) {
  constexpr uint32_t kMask = (uint32_t{1} << kDropped) - 1;
  const uint32_t bits = FloatBits(value);
  const uint32_t rounded = bits + (kMask >> 1) + ((bits >> kDropped) & 1);
  const bool is_nan = (bits & 0x7fffffffu) > 0x7f800000u;
  return FloatOfBits((is_nan ? bits | 0x00400000u : rounded) & ~kMask);
}

LEEWAY_HOST_DEVICE inline float RoundTf32(float value) { return RoundMantissa<13>(value); }
LEEWAY_HOST_DEVICE inline float RoundBf16(float value) { return RoundMantissa<16>(value); }
LEEWAY_HOST_DEVICE inline float RoundFp16(float value) {
  const uint32_t sign = FloatBits(value) & 0x80000000u;
  const float magnitude = FloatOfBits(FloatBits(value) & 0x7fffffffu);
  const float normal = RoundMantissa<13>(magnitude);
  // Floats from 0.5 on have a spacing of 2^-24, which is also the spacing of the smallest halves.
  // So this sum is rounded as a half is.
  const float tiny = (magnitude + 0.5f) - 0.5f;
  const float held = normal >= 65536.0f ? FloatOfBits(0x7f800000u) : normal;
  return FloatOfBits(FloatBits(magnitude < 0x1p-14f ? tiny : held) | sign);
}

// Returns the bits of the rounded value as a bfloat16. Fp16Bits does the same for IEEE half
// precision.
LEEWAY_HOST_DEVICE inline uint16_t Bf16Bits(float value) {
  return static_cast<uint16_t>(FloatBits(RoundBf16(value)) >> 16);
}
LEEWAY_HOST_DEVICE inline uint16_t Fp16Bits(float value) {
  const uint32_t bits = FloatBits(RoundFp16(value));
  const uint32_t magnitude = bits & 0x7fffffffu;
  // The exponents of floats and halves differ by 112. The mantissa of a tiny half counts steps of
  // 2^-24.
  const uint32_t normal = (magnitude - (uint32_t{112} << 23)) >> 13;
  const auto tiny =
      static_cast<uint32_t>(magnitude < 0x38800000u ? FloatOfBits(magnitude) * 0x1p24f : 0.0f);
  const uint32_t special =
      0x7c00u | (magnitude > 0x7f800000u ? 0x200u | (magnitude >> 13 & 0x3ffu) : 0);
  const uint32_t finite = magnitude < 0x38800000u ? tiny : normal;
  return static_cast<uint16_t>((magnitude >= 0x7f800000u ? special : finite) |
                               (bits >> 16 & 0x8000u));
}

LEEWAY_HOST_DEVICE inline float Rounded(Precision precision, float value) {
  switch (precision) {
    case Precision::kTf32:
      return RoundTf32(value);
    case Precision::kBf16:
      return RoundBf16(value);
    case Precision::kFp16:
      return RoundFp16(value);
    case Precision::kFp32:
      break;
  }
  return value;
}

}  // namespace leeway
