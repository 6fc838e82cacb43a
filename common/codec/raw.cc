// raw: float32 unchanged, little-endian.
#include <cstring>

#include "common/codec/group_codec.h"

namespace leeway {
namespace {

struct RawFormat {
  static constexpr v1::Encoding kEncoding = v1::ENCODING_RAW;
  static constexpr const char* kName = "float32";
  static constexpr uint32_t kLimit = kFloatMax;

  static size_t Bytes(size_t n) { return n * sizeof(float); }

  static void Encode(const float* values, size_t n, uint32_t, uint8_t* out, float* lost) {
    std::memcpy(out, values, n * sizeof(float));
    if (lost != nullptr) std::memset(lost, 0, n * sizeof(float));
  }

  static void Decode(const uint8_t* bytes, size_t n, float* out) {
    std::memcpy(out, bytes, n * sizeof(float));
  }

  static bool Valid(const uint8_t* bytes, size_t n) {
    float values[kGroup];
    Decode(bytes, n, values);
    return TopMagnitude(values, n) <= kFloatMax;
  }
};

}  // namespace

std::unique_ptr<const Codec> MakeRawCodec() { return std::make_unique<GroupCodec<RawFormat>>(); }

OpenedValues OpenRaw(Pieces bytes, size_t count) {
  return GroupValues<RawFormat>::Open(std::move(bytes), count);
}

}  // namespace leeway
