// sign: one bit for each value, its sign. The decoded value is the sign times the group's mean
// magnitude (Seide, Fu, Droppo, Li, Yu, "1-bit stochastic gradient descent", Interspeech 2014; in
// this form, the scaled sign, Karimireddy, Rebjock, Stich, Jaggi, ICML 2019, algorithm 1). A group
// has a float32 scale and 32 bytes, even if it is short. The sign of value i is bit i / 32 of byte
// i % 32, which is the order that vector instructions produce.
#include <bit>
#include <cfloat>
#include <cstring>

#include "common/codec/group_codec.h"

namespace leeway {
namespace {

constexpr size_t kLanes = 32;
constexpr size_t kRows = kGroup / kLanes;

struct SignFormat {
  static constexpr v1::Encoding kEncoding = v1::ENCODING_SIGN;
  static constexpr const char* kName = "sign";
  static constexpr uint32_t kLimit = kFloatMax;

  static size_t Bytes(size_t n) { return sizeof(float) + kLanes; }

  // Returns the mean magnitude of the first n values. The other values of the group must be zeros.
  // Divides each magnitude by 256 before the addition, so that the sums stay finite.
  static float ScaleOf(const float* values, size_t n) {
    float sums[kLanes] = {};
    for (size_t row = 0; row < kRows; ++row) {
      for (size_t lane = 0; lane < kLanes; ++lane) {
        const uint32_t bits = std::bit_cast<uint32_t>(values[row * kLanes + lane]);
        sums[lane] += std::bit_cast<float>(bits & 0x7fffffffu) * (1.0f / kGroup);
      }
    }
    for (size_t half = kLanes / 2; half > 0; half /= 2) {
      for (size_t lane = 0; lane < half; ++lane) sums[lane] += sums[lane + half];
    }
    return std::min(sums[0] * (static_cast<float>(kGroup) / static_cast<float>(n)), FLT_MAX);
  }

  static void Pack(const float* values, uint8_t* out) {
    uint32_t signs[kLanes] = {};
    for (size_t row = 0; row < kRows; ++row) {
      for (size_t lane = 0; lane < kLanes; ++lane) {
        signs[lane] |= std::bit_cast<uint32_t>(values[row * kLanes + lane]) >> 31 << row;
      }
    }
    for (size_t lane = 0; lane < kLanes; ++lane) out[lane] = static_cast<uint8_t>(signs[lane]);
  }

  static void Encode(const float* values, size_t n, uint32_t, uint8_t* out, float* lost) {
    alignas(64) float padded[kGroup];
    if (n < kGroup) {
      std::copy(values, values + n, padded);
      std::fill(padded + n, padded + kGroup, 0.0f);
      values = padded;
    }
    const float scale = ScaleOf(values, n);
    std::memcpy(out, &scale, sizeof(scale));
    Pack(values, out + sizeof(scale));
    if (lost == nullptr) return;
    LEEWAY_INDEPENDENT_ITERATIONS
    for (size_t i = 0; i < n; ++i) {
      const uint32_t sign = std::bit_cast<uint32_t>(values[i]) & 0x80000000u;
      lost[i] = values[i] - std::bit_cast<float>(std::bit_cast<uint32_t>(scale) | sign);
    }
  }

  static void Decode(const uint8_t* bytes, size_t n, float* out) {
    if (n == kGroup) return Unpack(bytes, out);
    alignas(64) float group[kGroup];
    Unpack(bytes, group);
    std::copy(group, group + n, out);
  }

  static void Unpack(const uint8_t* bytes, float* out) {
    uint32_t scale;
    std::memcpy(&scale, bytes, sizeof(scale));
    uint32_t signs[kLanes];
    for (size_t lane = 0; lane < kLanes; ++lane) signs[lane] = bytes[sizeof(scale) + lane];
    for (size_t row = 0; row < kRows; ++row) {
      for (size_t lane = 0; lane < kLanes; ++lane) {
        out[row * kLanes + lane] = std::bit_cast<float>(scale | (signs[lane] >> row << 31));
      }
    }
  }

  static bool Valid(const uint8_t* bytes, size_t n) {
    uint32_t scale;
    std::memcpy(&scale, bytes, sizeof(scale));
    bool valid = scale < 0x7f800000u;
    for (size_t i = n; i < kGroup; ++i) {
      valid &= ((bytes[sizeof(scale) + i % kLanes] >> (i / kLanes)) & 1) == 0;
    }
    return valid;
  }
};

}  // namespace

std::unique_ptr<const Codec> MakeSignCodec() { return std::make_unique<GroupCodec<SignFormat>>(); }

OpenedValues OpenSign(Pieces bytes, size_t count) {
  return GroupValues<SignFormat>::Open(std::move(bytes), count);
}

}  // namespace leeway
