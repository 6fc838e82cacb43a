// The bytes of each encoding, and its arithmetic against references in double.
#include <algorithm>
#include <cmath>

#include "absl/strings/escaping.h"
#include "common/codec/bf16.h"
#include "common/codec/fp16.h"
#include "tests/catch.h"
#include "tests/common/codec/codec_cases.h"

namespace leeway::codec_formats {
namespace {

using namespace leeway::testing;

std::shared_ptr<const Codec> CodecOf(v1::Encoding encoding) {
  for (const CodecCase& test : AllCodecs()) {
    if (test.codec->encoding() == encoding) return test.codec;
  }
  return nullptr;
}

std::string Hex(v1::Encoding encoding, const std::vector<float>& values) {
  const std::vector<uint8_t> bytes = Encode(*CodecOf(encoding), values, {});
  return absl::BytesToHexString(
      absl::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

TEST_CASE("the bytes are those of docs/protocol.md") {
  const std::vector<float> values = {1.0f, -2.5f, 0.0f, 127.0f};
  CHECK(Hex(v1::ENCODING_RAW, values) == "0000803f000020c0000000000000fe42");
  CHECK(Hex(v1::ENCODING_BF16, values) == "803f20c00000fe42");
  CHECK(Hex(v1::ENCODING_FP16, values) == "003c00c10000f057");
  // The scale is 1; -2.5 is rounded to the even -2.
  CHECK(Hex(v1::ENCODING_INT8, values) == "0000803f01fe007f");
  // The scale is 130.5 / 4; the second value is negative.
  CHECK(Hex(v1::ENCODING_SIGN, values) ==
        "00800242"
        "0001" +
            std::string(60, '0'));
  // One entry; parameter 1; index 3 as one 1, a 0, and a low bit 1; 127.
  CHECK(Hex(v1::ENCODING_TOP_K, values) ==
        "01000000"
        "01"
        "05"
        "fe42");
}

// Returns the magnitudes of a 16-bit format, ascending.
std::vector<double> Magnitudes(float (*decode)(uint16_t), uint16_t end) {
  std::vector<double> magnitudes;
  for (uint32_t half = 0; half < end; ++half) {
    magnitudes.push_back(decode(static_cast<uint16_t>(half)));
  }
  return magnitudes;
}

// Returns the nearest magnitude; if two are equally near, the even one; never above the largest.
uint16_t Nearest(const std::vector<double>& magnitudes, float value) {
  const double magnitude = std::fabs(static_cast<double>(value));
  size_t above =
      std::lower_bound(magnitudes.begin(), magnitudes.end(), magnitude) - magnitudes.begin();
  if (above == magnitudes.size()) above = magnitudes.size() - 1;
  if (above > 0) {
    const double up = magnitudes[above] - magnitude, down = magnitude - magnitudes[above - 1];
    if (down < up || (down == up && above % 2 == 1)) --above;
  }
  return static_cast<uint16_t>(above | (std::signbit(value) ? 0x8000u : 0u));
}

// Returns values of all sizes, and values around every step of the format.
std::vector<float> RoundingCases(const std::vector<double>& magnitudes) {
  std::vector<float> values = WildValues(200'000, 5);
  for (size_t i = 0; i + 1 < magnitudes.size(); i += i < 2100 ? 1 : 13) {
    const float middle = static_cast<float>((magnitudes[i] + magnitudes[i + 1]) / 2);
    for (const float value : {static_cast<float>(magnitudes[i]), middle,
                              std::nextafter(middle, 0.0f), std::nextafter(middle, FLT_MAX)}) {
      values.push_back(value);
      values.push_back(-value);
    }
  }
  values.push_back(FLT_MAX);
  while (values.size() % 256 != 3) values.push_back(0.1f);  // A short group, too.
  return values;
}

void CheckHalves(v1::Encoding encoding, const std::vector<double>& magnitudes) {
  const std::vector<float> values = RoundingCases(magnitudes);
  const std::vector<uint8_t> bytes = Encode(*CodecOf(encoding), values, {});
  std::vector<uint16_t> halves(values.size());
  REQUIRE(bytes.size() == halves.size() * sizeof(uint16_t));
  std::memcpy(halves.data(), bytes.data(), bytes.size());
  size_t wrong = 0;
  for (size_t i = 0; i < values.size(); ++i) wrong += halves[i] != Nearest(magnitudes, values[i]);
  CHECK(wrong == 0);
}

TEST_CASE("bf16 rounds to nearest even") {
  CHECK(FromBf16(0x3f80) == 1.0f);
  CheckHalves(v1::ENCODING_BF16, Magnitudes(FromBf16, 0x7f80));
}

TEST_CASE("fp16 rounds to nearest even and saturates") {
  CheckHalves(v1::ENCODING_FP16, Magnitudes(FromFp16, 0x7c00));
  CHECK(Nearest(Magnitudes(FromFp16, 0x7c00), 1e30f) == 0x7bff);
}

TEST_CASE("every half means what IEEE 754 says, with the processor's conversions and without") {
  std::vector<uint8_t> bytes;
  std::vector<float> expected;
  for (uint32_t half = 0; half < 0x10000; ++half) {
    const int exponent = half >> 10 & 31, fraction = half & 1023;
    if (exponent == 31) continue;
    const double magnitude =
        exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
    expected.push_back(static_cast<float>(half >> 15 ? -magnitude : magnitude));
    bytes.push_back(static_cast<uint8_t>(half));
    bytes.push_back(static_cast<uint8_t>(half >> 8));
    REQUIRE(SameBits(std::vector<float>{FromFp16(static_cast<uint16_t>(half))},
                     std::vector<float>{expected.back()}));
    REQUIRE(ToFp16(expected.back()) == half);
  }
  std::vector<float> decoded(expected.size());
  REQUIRE(Decode(v1::ENCODING_FP16, bytes, decoded).ok());
  CHECK(SameBits(decoded, expected));
}

TEST_CASE("fp16 gives the same bits with the processor's conversions and without") {
  for (const uint64_t seed : {1, 2, 3}) {
    const std::vector<float> values = WildValues(100'001, seed);
    const std::vector<uint8_t> bytes = Encode(*CodecOf(v1::ENCODING_FP16), values, {});
    size_t wrong = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      const uint16_t half = ToFp16(values[i]);
      wrong += std::memcmp(&half, bytes.data() + 2 * i, 2) != 0;
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("int8 is within half a scale, which is a 127th of the group's largest") {
  for (const std::vector<float>& values : HardInputs(1000)) {
    const std::vector<uint8_t> bytes = Encode(*CodecOf(v1::ENCODING_INT8), values, {});
    std::vector<float> decoded(values.size());
    REQUIRE(Decode(v1::ENCODING_INT8, bytes, decoded).ok());
    for (size_t begin = 0; begin < values.size(); begin += 256) {
      const size_t end = std::min(values.size(), begin + 256);
      double top = 0;
      for (size_t i = begin; i < end; ++i) {
        top = std::max(top, std::fabs(static_cast<double>(values[i])));
      }
      float scale;
      std::memcpy(&scale, bytes.data() + begin / 256 * 260, sizeof(scale));
      const double expected = top / 127 < FLT_MIN ? 0 : std::min(top / 127, FLT_MAX / 128.0);
      REQUIRE(scale == Approx(expected));
      for (size_t i = begin; i < end; ++i) {
        const double error = std::fabs(static_cast<double>(values[i]) - decoded[i]);
        const double bound = expected == 0 ? top : expected * 0.5001;
        // The largest floats are limited to 127 times the largest scale.
        REQUIRE(error <= std::max(bound, 1.0001 * (top - 127 * (FLT_MAX / 128.0))));
      }
    }
  }
}

TEST_CASE("sign is each value's sign times the group's mean magnitude") {
  for (const size_t count : {1000, 256, 31}) {
    const std::vector<float> values = NormalValues(count, 3);
    const std::vector<uint8_t> bytes = Encode(*CodecOf(v1::ENCODING_SIGN), values, {});
    REQUIRE(bytes.size() == (count + 255) / 256 * 36);
    std::vector<float> decoded(values.size());
    REQUIRE(Decode(v1::ENCODING_SIGN, bytes, decoded).ok());
    for (size_t begin = 0; begin < values.size(); begin += 256) {
      const size_t end = std::min(values.size(), begin + 256);
      double mean = 0;
      for (size_t i = begin; i < end; ++i) mean += std::fabs(values[i]) / double(end - begin);
      for (size_t i = begin; i < end; ++i) {
        REQUIRE(decoded[i] == Approx(std::copysign(mean, values[i])).epsilon(1e-6));
      }
    }
  }
}

TEST_CASE("sizes beside float32") {
  const std::vector<float> values = NormalValues(262144, 1);
  const auto share = [&](v1::Encoding encoding) {
    return static_cast<double>(Encode(*CodecOf(encoding), values, {}).size()) / (4.0 * 262144);
  };
  CHECK(share(v1::ENCODING_BF16) == 0.5);
  CHECK(share(v1::ENCODING_FP16) == 0.5);
  CHECK(share(v1::ENCODING_INT8) < 0.255);
  CHECK(share(v1::ENCODING_SIGN) < 0.036);
  CHECK(share(v1::ENCODING_TOP_K) < 0.0077);
}

}  // namespace
}  // namespace leeway::codec_formats
