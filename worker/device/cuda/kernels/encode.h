// Encodes contributions in the formats of common/codec with groups of 256 values, with the same
// bits as on the CPU. If the encoding of a group depends on all its values, three kernels encode
// the group. The first kernel has 32 lanes for the group, and each lane covers every 32nd value.
// The second kernel joins the lanes' results. The third kernel encodes the group's values.
#pragma once

#include <cfloat>
#include <cstddef>
#include <cstdint>

#include "common/host_device.h"
#include "worker/compute/precision.h"

namespace leeway::cuda {

inline constexpr size_t kGroupValues = 256;
inline constexpr size_t kGroupLanes = 32;
// The number of bytes of the scale, a float in front of the values of a group.
inline constexpr size_t kScaleBytes = 4;

LEEWAY_HOST_DEVICE inline uint32_t MagnitudeBits(float value) {
  return FloatBits(value) & 0x7fffffffu;
}

// Limits the magnitude of a value to the float whose bits are `limit`. For NaN, returns that float.
LEEWAY_HOST_DEVICE inline float HoldMagnitude(float value, uint32_t limit) {
  const uint32_t magnitude = MagnitudeBits(value);
  return FloatOfBits((magnitude < limit ? magnitude : limit) | (FloatBits(value) & 0x80000000u));
}

// The values to encode, and the residual that earlier encodings have left.
struct EncodeInput {
  size_t count;
  const float* values;
  float* residual;

  // Returns the sum of value and residual of element i, limited in magnitude. Returns 0 beyond the
  // end.
  LEEWAY_HOST_DEVICE float Sum(size_t i, uint32_t limit) const {
    return i < count ? HoldMagnitude(values[i] + residual[i], limit) : 0.0f;
  }
  LEEWAY_HOST_DEVICE size_t SizeOf(size_t group) const {
    const size_t rest = count - group * kGroupValues;
    return rest < kGroupValues ? rest : kGroupValues;
  }
};

struct Bf16Halves {
  // The bits of the largest float that does not round to infinity.
  static constexpr uint32_t kLimit = 0x7f7f7fff;
  LEEWAY_HOST_DEVICE static float Round(float value) { return RoundBf16(value); }
  LEEWAY_HOST_DEVICE static uint32_t Bits(float value) { return Bf16Bits(value); }
};
struct Fp16Halves {
  static constexpr uint32_t kLimit = 0x7f7fffff;
  // Limits values beyond the largest half to that half.
  LEEWAY_HOST_DEVICE static float Held(float value) { return HoldMagnitude(value, 0x477fe000u); }
  LEEWAY_HOST_DEVICE static float Round(float value) { return RoundFp16(Held(value)); }
  LEEWAY_HOST_DEVICE static uint32_t Bits(float value) { return Fp16Bits(Held(value)); }
};

// Encodes two values as 16-bit numbers.
template <typename Halves>
struct EncodeHalves {
  EncodeInput input;
  uint32_t* encoded;

  LEEWAY_HOST_DEVICE void operator()(size_t pair) const {
    uint32_t bits = 0;
    for (size_t half = 0; half < 2; ++half) {
      const size_t i = 2 * pair + half;
      const float sum = input.Sum(i, Halves::kLimit);
      bits |= Halves::Bits(sum) << (16 * half);
      if (i < input.count) input.residual[i] = sum - Halves::Round(sum);
    }
    encoded[pair] = bits;
  }
};

// ---- int8: a scale, then one byte for each value
struct Int8Groups {
  static constexpr size_t kBytes = kScaleBytes + kGroupValues;
  // The bits of (FLT_MAX / 128) * 127.
  static constexpr uint32_t kLimit = 0x7f7dffff;
  using Partial = uint32_t;

  // A lane's partial result is the largest magnitude among its values.
  LEEWAY_HOST_DEVICE static Partial Start() { return 0; }
  LEEWAY_HOST_DEVICE static Partial Add(Partial partial, float sum) {
    const uint32_t bits = MagnitudeBits(sum);
    return bits > partial ? bits : partial;
  }
  LEEWAY_HOST_DEVICE static Partial Join(Partial a, Partial b) { return a > b ? a : b; }
  LEEWAY_HOST_DEVICE static float Scale(Partial top, size_t) {
    const float largest = FloatOfBits(top) / 127;
    return largest >= FLT_MIN ? largest : 0;
  }
};

// ---- sign: the mean magnitude, then one bit for each value
struct SignGroups {
  static constexpr size_t kBytes = kScaleBytes + kGroupLanes;
  static constexpr uint32_t kLimit = 0x7f7fffff;
  using Partial = float;

  LEEWAY_HOST_DEVICE static Partial Start() { return 0; }
  LEEWAY_HOST_DEVICE static Partial Add(Partial partial, float sum) {
    return partial + FloatOfBits(MagnitudeBits(sum)) * (1.0f / kGroupValues);
  }
  LEEWAY_HOST_DEVICE static Partial Join(Partial a, Partial b) { return a + b; }
  LEEWAY_HOST_DEVICE static float Scale(Partial total, size_t size) {
    const float scale = total * (static_cast<float>(kGroupValues) / static_cast<float>(size));
    return scale < FLT_MAX ? scale : FLT_MAX;
  }
};

// Computes the partial result of one lane of a group. Writes the sums of values and residual to the
// residual.
template <typename Groups>
struct EncodePartials {
  EncodeInput input;
  typename Groups::Partial* partials;

  LEEWAY_HOST_DEVICE void operator()(size_t i) const {
    typename Groups::Partial partial = Groups::Start();
    const size_t first = i / kGroupLanes * kGroupValues + i % kGroupLanes;
    for (size_t at = first; at < first + kGroupValues && at < input.count; at += kGroupLanes) {
      const float sum = input.Sum(at, Groups::kLimit);
      input.residual[at] = sum;
      partial = Groups::Add(partial, sum);
    }
    partials[i] = partial;
  }
};

// Computes the scale of a group. The lanes' results are joined in the order of
// common/codec/sign.cc.
template <typename Groups>
struct EncodeScales {
  EncodeInput input;
  const typename Groups::Partial* partials;
  uint8_t* encoded;

  LEEWAY_HOST_DEVICE void operator()(size_t group) const {
    typename Groups::Partial lanes[kGroupLanes];
    for (size_t lane = 0; lane < kGroupLanes; ++lane) {
      lanes[lane] = partials[group * kGroupLanes + lane];
    }
    for (size_t half = kGroupLanes / 2; half > 0; half /= 2) {
      for (size_t lane = 0; lane < half; ++lane) {
        lanes[lane] = Groups::Join(lanes[lane], lanes[lane + half]);
      }
    }
    *reinterpret_cast<float*>(encoded + group * Groups::kBytes) =
        Groups::Scale(lanes[0], input.SizeOf(group));
  }
};

// Encodes four values of an int8 group. Reads their sums from the residual.
struct EncodeInt8 {
  static constexpr size_t kAtOnce = 4;
  static constexpr size_t kEach = kGroupValues / kAtOnce;

  EncodeInput input;
  uint8_t* encoded;

  LEEWAY_HOST_DEVICE void operator()(size_t i) const {
    const size_t group = i / kEach;
    uint8_t* const out = encoded + group * Int8Groups::kBytes;
    const float scale = *reinterpret_cast<const float*>(out);
    const float inverse = scale > 0 ? 1 / scale : 0;
    const size_t first = i % kEach * kAtOnce;
    if (group * kGroupValues + first >= input.count) return;
    uint32_t word = 0;
    for (size_t k = 0; k < kAtOnce; ++k) {
      const size_t at = group * kGroupValues + first + k;
      if (at >= input.count) break;
      const float sum = input.residual[at];
      // The addition rounds to the nearest whole number, ties to even, and leaves it in the low
      // bits.
      const uint32_t code = FloatBits(sum * inverse + 0x1.8p23f) & 0xffu;
      word |= code << (8 * k);
      input.residual[at] = sum - static_cast<float>(static_cast<int8_t>(code)) * scale;
    }
    *reinterpret_cast<uint32_t*>(out + kScaleBytes + first) = word;
  }
};

// Encodes one lane of a sign group. Reads the sums from the residual. Value i is bit i / 32 of byte
// i % 32.
struct EncodeSign {
  EncodeInput input;
  uint8_t* encoded;

  LEEWAY_HOST_DEVICE void operator()(size_t i) const {
    const size_t group = i / kGroupLanes;
    const size_t lane = i % kGroupLanes;
    uint8_t* const out = encoded + group * SignGroups::kBytes;
    const uint32_t scale = MagnitudeBits(*reinterpret_cast<const float*>(out));
    uint32_t signs = 0;
    for (size_t row = 0; row < kGroupValues / kGroupLanes; ++row) {
      const size_t at = group * kGroupValues + row * kGroupLanes + lane;
      if (at >= input.count) break;
      const float sum = input.residual[at];
      const uint32_t sign = FloatBits(sum) & 0x80000000u;
      signs |= sign >> 31 << row;
      input.residual[at] = sum - FloatOfBits(scale | sign);
    }
    out[kScaleBytes + lane] = static_cast<uint8_t>(signs);
  }
};

}  // namespace leeway::cuda
