// bf16: the upper half of each float32, as uint16, little-endian.
#include "common/codec/bf16.h"

#include <cstring>

#include "common/codec/group_codec.h"

namespace leeway {
namespace {

struct Bf16Format {
  static constexpr v1::Encoding kEncoding = v1::ENCODING_BF16;
  static constexpr const char* kName = "bf16";
  static constexpr uint32_t kLimit = kBf16Limit;

  static size_t Bytes(size_t n) { return n * sizeof(uint16_t); }

  static void Encode(const float* values, size_t n, uint32_t, uint8_t* out, float* lost) {
    uint16_t halves[kGroup];
    for (size_t i = 0; i < n; ++i) halves[i] = ToBf16(values[i]);
    std::memcpy(out, halves, Bytes(n));
    if (lost == nullptr) return;
    LEEWAY_INDEPENDENT_ITERATIONS
    for (size_t i = 0; i < n; ++i) lost[i] = values[i] - FromBf16(halves[i]);
  }

  static void Decode(const uint8_t* bytes, size_t n, float* out) {
    uint16_t halves[kGroup];
    std::memcpy(halves, bytes, Bytes(n));
    for (size_t i = 0; i < n; ++i) out[i] = FromBf16(halves[i]);
  }

  static bool Valid(const uint8_t* bytes, size_t n) {
    uint16_t halves[kGroup];
    std::memcpy(halves, bytes, Bytes(n));
    uint16_t top = 0;
    for (size_t i = 0; i < n; ++i) {
      top = std::max(top, static_cast<uint16_t>(halves[i] & 0x7fffu));
    }
    return IsFiniteBf16(top);
  }
};

}  // namespace

std::unique_ptr<const Codec> MakeBf16Codec() { return std::make_unique<GroupCodec<Bf16Format>>(); }

OpenedValues OpenBf16(Pieces bytes, size_t count) {
  return GroupValues<Bf16Format>::Open(std::move(bytes), count);
}

}  // namespace leeway
