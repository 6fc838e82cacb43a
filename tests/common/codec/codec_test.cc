// What every codec promises.
#include "common/codec/codec.h"

#include <cmath>
#include <list>

#include "common/codec/encoded.h"
#include "tests/catch.h"
#include "tests/common/codec/codec_cases.h"

namespace leeway::codec {
namespace {

using namespace leeway::testing;

constexpr size_t kCounts[] = {0, 1, 7, 255, 256, 257, 1000, 1024, 3333};

std::vector<float> Decoded(const Codec& codec, const std::vector<uint8_t>& bytes, size_t count) {
  std::vector<float> values(count, 7.0f);
  const absl::Status status = Decode(codec.encoding(), bytes, values);
  INFO(status.ToString());
  REQUIRE(status.ok());
  return values;
}

bool AllFinite(std::span<const float> values) {
  for (const float value : values) {
    if (!std::isfinite(value)) return false;
  }
  return true;
}

// The codec's sum of value and residual, limited to the largest float.
float Sum(float value, float residual) {
  const double sum = static_cast<float>(static_cast<double>(value) + residual);
  return static_cast<float>(std::fmin(std::fmax(sum, -FLT_MAX), FLT_MAX));
}

TEST_CASE("what a codec writes fits, decodes to finite values, and leaves a finite residual") {
  for (const CodecCase& test : AllCodecs()) {
    for (const size_t count : kCounts) {
      for (const std::vector<float>& values : HardInputs(count)) {
        INFO(test.name << ", " << count << " values");
        std::vector<float> residual = values;  // The largest possible residual.
        std::vector<uint8_t> bytes(test.codec->MaxBytes(count) + 8, 0xab);
        const size_t size = test.codec->Encode(values, residual, bytes);
        REQUIRE(size <= test.codec->MaxBytes(count));
        for (size_t i = size; i < bytes.size(); ++i) {
          if (i >= test.codec->MaxBytes(count)) REQUIRE(bytes[i] == 0xab);
        }
        bytes.resize(size);
        REQUIRE(AllFinite(Decoded(*test.codec, bytes, count)));
        REQUIRE(AllFinite(residual));
      }
    }
  }
}

TEST_CASE("what was not sent is in the residual") {
  for (const CodecCase& test : AllCodecs()) {
    const v1::Encoding encoding = test.codec->encoding();
    const bool exact = encoding == v1::ENCODING_RAW || encoding == v1::ENCODING_BF16 ||
                       encoding == v1::ENCODING_TOP_K;
    for (const double size : {1.0, 1e-3, 1e-20}) {
      INFO(test.name << ", values of about " << size);
      const std::vector<float> values = NormalValues(1500, 11, size);
      std::vector<float> residual = NormalValues(1500, 12, 0.3 * size);
      const std::vector<float> before = residual;
      const std::vector<uint8_t> bytes = Encode(*test.codec, values, residual);
      const std::vector<float> decoded = Decoded(*test.codec, bytes, values.size());
      for (size_t i = 0; i < values.size(); ++i) {
        const float sum = Sum(values[i], before[i]);
        REQUIRE(residual[i] == sum - decoded[i]);
        if (exact) REQUIRE(static_cast<double>(residual[i]) + decoded[i] == sum);
      }
    }
  }
}

TEST_CASE("without a residual the values alone are encoded, as with one of zeros") {
  for (const CodecCase& test : AllCodecs()) {
    for (const size_t count : kCounts) {
      for (const std::vector<float>& values : HardInputs(count)) {
        INFO(test.name << ", " << count << " values");
        std::vector<float> zeros(count);
        const std::vector<uint8_t> alone = Encode(*test.codec, values, {});
        // 0 and -0 add up to 0.
        std::vector<float> positive = values;
        for (float& value : positive) value += 0.0f;
        REQUIRE(Encode(*test.codec, positive, zeros) == Encode(*test.codec, positive, {}));
        REQUIRE(alone == Encode(*test.codec, values, {}));
      }
    }
  }
}

TEST_CASE("over many rounds everything is sent") {
  constexpr size_t kCount = 700;
  constexpr int kRounds = 400;
  for (const CodecCase& test : AllCodecs()) {
    if (test.name.find("1e-09") != std::string::npos) continue;  // One value a round.
    INFO(test.name);
    const std::vector<float> drift = NormalValues(kCount, 21, 0.1);
    std::vector<float> residual(kCount);
    std::vector<double> sent(kCount), wanted(kCount);
    double residual_top = 0;
    for (int round = 0; round < kRounds; ++round) {
      std::vector<float> values = NormalValues(kCount, 100 + round);
      for (size_t i = 0; i < kCount; ++i) wanted[i] += values[i] += drift[i];
      const std::vector<uint8_t> bytes = Encode(*test.codec, values, residual);
      const std::vector<float> decoded = Decoded(*test.codec, bytes, kCount);
      for (size_t i = 0; i < kCount; ++i) sent[i] += decoded[i];
    }
    for (size_t i = 0; i < kCount; ++i) {
      REQUIRE(sent[i] + residual[i] == Approx(wanted[i]).margin(1e-2));
      residual_top = std::max(residual_top, std::fabs(static_cast<double>(residual[i])));
    }
    // The residual does not grow with the rounds: with 1 % of the values a round, each value waits
    // for some hundred rounds of steps of size 1.
    CHECK(residual_top < 150);
  }
}

TEST_CASE("bytes are a pure function of the values") {
  for (const CodecCase& test : AllCodecs()) {
    const std::vector<float> values = NormalValues(5000, 31);
    std::vector<float> shifted(5001);
    std::copy(values.begin(), values.end(), shifted.begin() + 1);
    std::vector<float> residual(5000, 0.25f), residual_again(5001, 0.25f);
    const auto bytes = Encode(*test.codec, values, residual);
    // The buffers have other addresses and another alignment.
    CHECK(bytes ==
          Encode(*test.codec, std::span(shifted).subspan(1), std::span(residual_again).subspan(1)));
    CHECK(SameBits(residual, std::span(residual_again).subspan(1)));
  }
}

TEST_CASE("any part of a payload reads as that part of the whole, however the bytes are split") {
  for (const CodecCase& test : AllCodecs()) {
    const size_t count = 2600;
    const std::vector<float> values = NormalValues(count, 41);
    const std::vector<uint8_t> bytes = Encode(*test.codec, values, {});
    const std::vector<float> whole = Decoded(*test.codec, bytes, count);
    for (const size_t piece : {size_t{1}, size_t{3}, size_t{100}, size_t{1000}, bytes.size()}) {
      // Each result is in memory of its own.
      std::list<std::vector<uint8_t>> memory;
      FloatPayload::PieceList pieces;
      for (size_t at = 0; at < bytes.size(); at += piece) {
        const auto begin = bytes.begin() + at;
        memory.emplace_back(begin, begin + std::min(piece, bytes.size() - at));
        pieces.emplace_back(memory.back());
        pieces.emplace_back();
      }
      const auto opened = EncodedValues::Open(test.codec->encoding(), nullptr, pieces, count);
      REQUIRE(opened.ok());
      REQUIRE((*opened)->size() == count);
      for (size_t offset : {0, 1, 255, 256, 300, 1023, 1024, 1025, 2559, 2560, 2599, 2600}) {
        for (size_t size : {0, 1, 2, 255, 256, 257, 1024, 1300, 2600}) {
          size = std::min(size, count - offset);
          std::vector<float> part(size, 3.0f);
          (*opened)->Read(offset, part);
          INFO(test.name << ", pieces of " << piece << ", " << size << " from " << offset);
          REQUIRE(SameBits(part, std::span(whole).subspan(offset, size)));
        }
      }
      std::vector<float> sum(values.size() - 5, 2.0f);
      (*opened)->AddTo(sum);
      for (size_t i = 0; i < sum.size(); ++i) REQUIRE(sum[i] == 2.0f + whole[i]);
    }
  }
}

TEST_CASE("opened values keep their owner, if they need it") {
  const auto codec = AllCodecs()[1].codec;
  const std::vector<float> values = NormalValues(600, 51);
  auto owner = std::make_shared<std::vector<uint8_t>>(Encode(*codec, values, {}));
  const std::weak_ptr<std::vector<uint8_t>> watch = owner;
  auto opened = EncodedValues::Open(codec->encoding(), owner, {*owner}, 600).value();
  owner.reset();
  REQUIRE_FALSE(watch.expired());
  std::vector<float> out(600);
  opened->Read(0, out);
  opened.reset();
  REQUIRE(watch.expired());
}

TEST_CASE("a codec is made from what the job says") {
  v1::Codec config;
  CHECK(
      MakeCodec(config).status().message() ==
      "codec: this build does not know the type; use none, auto, bf16, fp16, int8, top_k or sign");
  config.mutable_auto_();
  CHECK(MakeCodec(config).status().message() == "codec: auto has not been resolved");
  const v1::Encoding encodings[] = {v1::ENCODING_RAW,  v1::ENCODING_BF16, v1::ENCODING_FP16,
                                    v1::ENCODING_INT8, v1::ENCODING_SIGN, v1::ENCODING_TOP_K};
  const std::vector<CodecCase> all = AllCodecs();
  for (size_t i = 0; i < 6; ++i) {
    CHECK(all[i].codec->encoding() == encodings[i]);
    CHECK(CarriesChanges(encodings[i]) == (i >= 4));
  }
}

}  // namespace
}  // namespace leeway::codec
