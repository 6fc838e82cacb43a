// fp16: IEEE 754 half precision, as uint16, little-endian. A value out of range becomes the largest
// half, 65504, with its sign. A magnitude below 2^-25 becomes 0.
#include "common/codec/fp16.h"

#include <cstring>

#if defined(__F16C__)
#include <immintrin.h>
#endif

#include "common/codec/group_codec.h"

namespace leeway {
namespace {

// Conversions by the processor's own instructions, with the same bits as those of
// common/codec/fp16.h. Each function converts the first values and returns how many it has
// converted.
#if defined(__F16C__)
size_t ToFp16s(const float* values, size_t n, uint16_t* halves) {
  const __m256 limit = _mm256_set1_ps(65504.0f);
  const __m256 sign = _mm256_set1_ps(-0.0f);
  size_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const __m256 value = _mm256_loadu_ps(values + i);
    // If a magnitude is NaN, the minimum is the second operand, `limit`, as in the scalar code.
    const __m256 magnitude = _mm256_min_ps(_mm256_andnot_ps(sign, value), limit);
    const __m256 held = _mm256_or_ps(magnitude, _mm256_and_ps(sign, value));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(halves + i),
                     _mm256_cvtps_ph(held, _MM_FROUND_TO_NEAREST_INT));
  }
  return i;
}

size_t FromFp16s(const uint16_t* halves, size_t n, float* values) {
  size_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const __m128i half = _mm_loadu_si128(reinterpret_cast<const __m128i*>(halves + i));
    _mm256_storeu_ps(values + i, _mm256_cvtph_ps(half));
  }
  return i;
}
#else
size_t ToFp16s(const float*, size_t, uint16_t*) { return 0; }
size_t FromFp16s(const uint16_t*, size_t, float*) { return 0; }
#endif

struct Fp16Format {
  static constexpr v1::Encoding kEncoding = v1::ENCODING_FP16;
  static constexpr const char* kName = "fp16";
  static constexpr uint32_t kLimit = kFloatMax;

  static size_t Bytes(size_t n) { return n * sizeof(uint16_t); }

  static void Encode(const float* values, size_t n, uint32_t, uint8_t* out, float* lost) {
    uint16_t halves[kGroup];
    for (size_t i = ToFp16s(values, n, halves); i < n; ++i) halves[i] = ToFp16(values[i]);
    std::memcpy(out, halves, Bytes(n));
    if (lost == nullptr) return;
    alignas(64) float decoded[kGroup];
    DecodeHalves(halves, n, decoded);
    LEEWAY_INDEPENDENT_ITERATIONS
    for (size_t i = 0; i < n; ++i) lost[i] = values[i] - decoded[i];
  }

  static void Decode(const uint8_t* bytes, size_t n, float* out) {
    uint16_t halves[kGroup];
    std::memcpy(halves, bytes, Bytes(n));
    DecodeHalves(halves, n, out);
  }

  static void DecodeHalves(const uint16_t* halves, size_t n, float* out) {
    for (size_t i = FromFp16s(halves, n, out); i < n; ++i) out[i] = FromFp16(halves[i]);
  }

  static bool Valid(const uint8_t* bytes, size_t n) {
    uint16_t halves[kGroup];
    std::memcpy(halves, bytes, Bytes(n));
    uint16_t top = 0;
    for (size_t i = 0; i < n; ++i) {
      top = std::max(top, static_cast<uint16_t>(halves[i] & 0x7fffu));
    }
    return top < 0x7c00u;
  }
};

}  // namespace

std::unique_ptr<const Codec> MakeFp16Codec() { return std::make_unique<GroupCodec<Fp16Format>>(); }

OpenedValues OpenFp16(Pieces bytes, size_t count) {
  return GroupValues<Fp16Format>::Open(std::move(bytes), count);
}

}  // namespace leeway
