// Bytes that no codec wrote are refused, or decoded to finite values. They are never read out of
// bounds: the buffers have exact sizes, so AddressSanitizer would notice.
#include <cmath>

#include "tests/catch.h"
#include "tests/common/codec/codec_cases.h"

namespace leeway::codec_hostile {
namespace {

using namespace leeway::testing;

std::string ErrorOf(v1::Encoding encoding, const std::vector<uint8_t>& bytes, size_t count) {
  std::vector<float> out(count, 5.0f);
  const auto copy = std::make_unique<uint8_t[]>(bytes.size());
  std::copy(bytes.begin(), bytes.end(), copy.get());
  const absl::Status status = Decode(encoding, {copy.get(), bytes.size()}, out);
  if (status.ok()) {
    for (const float value : out) {
      if (!std::isfinite(value)) FAIL_CHECK("a value that is not finite was accepted");
    }
    return "";
  }
  CHECK(status.code() == absl::StatusCode::kInvalidArgument);
  for (const float value : out) {
    if (value != 5.0f) FAIL_CHECK("refused, and written");
  }
  return std::string(status.message());
}

TEST_CASE("every truncation and every longer payload is refused") {
  for (const CodecCase& test : AllCodecs()) {
    for (const size_t count : {1, 300}) {
      const std::vector<uint8_t> bytes = Encode(*test.codec, NormalValues(count, 1), {});
      REQUIRE(ErrorOf(test.codec->encoding(), bytes, count) == "");
      for (size_t size = 0; size < bytes.size(); ++size) {
        INFO(test.name << ", " << size << " of " << bytes.size() << " bytes");
        CHECK(ErrorOf(test.codec->encoding(), {bytes.begin(), bytes.begin() + size}, count) != "");
      }
      for (const uint8_t more : {0, 1, 255}) {
        std::vector<uint8_t> longer = bytes;
        longer.push_back(more);
        INFO(test.name << ", a byte " << int{more} << " more");
        CHECK(ErrorOf(test.codec->encoding(), longer, count) != "");
      }
    }
  }
}

TEST_CASE("every changed byte is refused or gives finite values") {
  for (const CodecCase& test : AllCodecs()) {
    const std::vector<uint8_t> bytes = Encode(*test.codec, NormalValues(300, 1), {});
    for (size_t at = 0; at < bytes.size(); ++at) {
      for (int value = 0; value < 256; value += at < 8 ? 1 : 5) {
        std::vector<uint8_t> changed = bytes;
        changed[at] = static_cast<uint8_t>(value);
        ErrorOf(test.codec->encoding(), changed, 300);
        ErrorOf(test.codec->encoding(), changed, 299);
      }
    }
  }
}

TEST_CASE("random bytes are refused or give finite values") {
  RandomStream random(9, RandomPurpose::kGenerate);
  for (const CodecCase& test : AllCodecs()) {
    for (int round = 0; round < 3000; ++round) {
      const size_t count = 1 + random.Below(600);
      std::vector<uint8_t> bytes(random.Below(3) == 0 ? random.Below(700)
                                                      : test.codec->MaxBytes(count));
      for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random.NextU32());
      // A top_k payload with a valid header is decoded further.
      if (bytes.size() > 5) {
        bytes[0] = static_cast<uint8_t>(random.Below(8));
        bytes[1] = bytes[2] = bytes[3] = 0;
        bytes[4] = static_cast<uint8_t>(random.Below(34));
      }
      ErrorOf(test.codec->encoding(), bytes, count);
    }
  }
}

TEST_CASE("a payload of another encoding is refused or gives finite values") {
  for (const CodecCase& written : AllCodecs()) {
    const std::vector<uint8_t> bytes = Encode(*written.codec, NormalValues(300, 1), {});
    for (const CodecCase& read : AllCodecs()) ErrorOf(read.codec->encoding(), bytes, 300);
  }
}

TEST_CASE("errors say what is wrong") {
  const std::vector<CodecCase> all = AllCodecs();
  CHECK(ErrorOf(v1::ENCODING_INT8, std::vector<uint8_t>(7), 4) ==
        "payload: 4 values in int8 need 8 bytes, but the payload has 7");
  CHECK(ErrorOf(static_cast<v1::Encoding>(77), {}, 4) ==
        "payload: this build does not know encoding 77");
  CHECK(ErrorOf(v1::ENCODING_BF16, {0x80, 0x7f}, 1) ==
        "payload: at or after value 0, a value or scale in bf16 is not finite, or an unused bit is "
        "not 0");
  CHECK(ErrorOf(v1::ENCODING_TOP_K, {1, 2}, 4) ==
        "payload: top_k: 2 bytes are too few for the header");
  CHECK(ErrorOf(v1::ENCODING_TOP_K, {5, 0, 0, 0, 0}, 4) ==
        "payload: top_k: 5 entries are too many for 4 values");
  CHECK(ErrorOf(v1::ENCODING_TOP_K, {1, 0, 0, 0, 40, 0, 0, 0}, 4) ==
        "payload: top_k: the Rice parameter is 40; the maximum is 31");
  CHECK(ErrorOf(v1::ENCODING_TOP_K, {3, 0, 0, 0, 0, 0, 0, 0}, 4) ==
        "payload: top_k: 3 entries do not fit in 8 bytes");
  CHECK(ErrorOf(v1::ENCODING_TOP_K, {1, 0, 0, 0, 0, 0x0f, 0, 0}, 4) ==
        "payload: top_k: index 4 is out of range: there are 4 values");
  CHECK(ErrorOf(v1::ENCODING_TOP_K, {1, 0, 0, 0, 0, 0xff, 0, 0}, 400) ==
        "payload: top_k: the indices are truncated after the first 0");
  CHECK(ErrorOf(v1::ENCODING_TOP_K, {1, 0, 0, 0, 0, 0x10, 0, 0}, 4) ==
        "payload: top_k: the padding after the last index is not zero");
  CHECK(ErrorOf(v1::ENCODING_TOP_K, {1, 0, 0, 0, 0, 0, 0, 0, 0}, 4) ==
        "payload: top_k: there are bytes between the indices and the values");
  CHECK(ErrorOf(v1::ENCODING_TOP_K, {1, 0, 0, 0, 0, 1, 0x80, 0xff}, 4) ==
        "payload: top_k: the value of element 1 is not finite");
}

TEST_CASE("scales that would overflow, and bits behind the last sign, are refused") {
  const float scales[] = {-1.0f, FLT_MAX / 100, INFINITY, NAN};
  for (const float scale : scales) {
    std::vector<uint8_t> bytes(4 + 3, 1);
    std::memcpy(bytes.data(), &scale, sizeof(scale));
    CHECK(ErrorOf(v1::ENCODING_INT8, bytes, 3) != "");
  }
  // Every code is valid with every valid scale.
  const float largest = FLT_MAX / 128;
  std::vector<uint8_t> bytes = {0, 0, 0, 0, 0x80, 0x7f, 0x81};
  std::memcpy(bytes.data(), &largest, sizeof(largest));
  CHECK(ErrorOf(v1::ENCODING_INT8, bytes, 3) == "");
  std::vector<uint8_t> signs(36);
  CHECK(ErrorOf(v1::ENCODING_SIGN, signs, 3) == "");
  signs[4 + 3] = 1;
  CHECK(ErrorOf(v1::ENCODING_SIGN, signs, 3) != "");
  signs[4 + 3] = 0;
  signs[4] = 2;
  CHECK(ErrorOf(v1::ENCODING_SIGN, signs, 3) != "");
}

}  // namespace
}  // namespace leeway::codec_hostile
