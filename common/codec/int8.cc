// int8: blockwise 8 bits (Dettmers, Lewis, Shleifer, Zettlemoyer, "8-bit optimizers via block-wise
// quantization", ICLR 2022, section 2.1, with the linear map). A group has a float32 scale, and an
// int8 q for each value. The decoded value is q * scale. The scale is the largest magnitude of the
// group divided by 127, so the error is at most half of the scale.
#include <bit>
#include <cfloat>
#include <cstring>

#include "common/codec/group_codec.h"

namespace leeway {
namespace {

// The largest scale that is accepted. Its product with any int8 is finite.
constexpr float kScaleMax = FLT_MAX / 128;
// Adding this number rounds a float to the nearest whole number (ties to even) and leaves the whole
// number in the low bits.
constexpr float kRounder = 0x1.8p23f;

struct Int8Format {
  static constexpr v1::Encoding kEncoding = v1::ENCODING_INT8;
  static constexpr const char* kName = "int8";
  static constexpr uint32_t kLimit = std::bit_cast<uint32_t>(127 * kScaleMax);

  static size_t Bytes(size_t n) { return sizeof(float) + n; }

  static void Encode(const float* values, size_t n, uint32_t top, uint8_t* out, float* lost) {
    const float largest = std::bit_cast<float>(top) / 127;
    // Below FLT_MIN the inverse of the scale may be infinite. So a group with such a scale is
    // encoded as zeros, and the residual gets the whole values.
    const float scale = largest >= FLT_MIN ? largest : 0;
    const float inverse = scale > 0 ? 1 / scale : 0;
    int8_t codes[kGroup];
    for (size_t i = 0; i < n; ++i) {
      const uint32_t rounded = std::bit_cast<uint32_t>(values[i] * inverse + kRounder);
      codes[i] = static_cast<int8_t>(rounded);
    }
    std::memcpy(out, &scale, sizeof(scale));
    std::memcpy(out + sizeof(scale), codes, n);
    if (lost == nullptr) return;
    LEEWAY_INDEPENDENT_ITERATIONS
    for (size_t i = 0; i < n; ++i) lost[i] = values[i] - static_cast<float>(codes[i]) * scale;
  }

  static void Decode(const uint8_t* bytes, size_t n, float* out) {
    float scale;
    std::memcpy(&scale, bytes, sizeof(scale));
    int8_t codes[kGroup];
    std::memcpy(codes, bytes + sizeof(scale), n);
    for (size_t i = 0; i < n; ++i) out[i] = static_cast<float>(codes[i]) * scale;
  }

  static bool Valid(const uint8_t* bytes, size_t n) {
    float scale;
    std::memcpy(&scale, bytes, sizeof(scale));
    return scale >= 0 && scale <= kScaleMax;
  }
};

}  // namespace

std::unique_ptr<const Codec> MakeInt8Codec() { return std::make_unique<GroupCodec<Int8Format>>(); }

OpenedValues OpenInt8(Pieces bytes, size_t count) {
  return GroupValues<Int8Format>::Open(std::move(bytes), count);
}

}  // namespace leeway
