#include <google/protobuf/text_format.h>

#include "common/codec/choose.h"
#include "tests/catch.h"
#include "tests/common/codec/codec_cases.h"

namespace leeway::codec_choose {
namespace {

constexpr double kGigabit = 125e6;
const AutoRates kFast = {{10e9, 20e9}, {8e9, 15e9}};

TEST_CASE(
    "auto takes a codec where the link is slower than its saving, and none where it would lose") {
  CHECK(ChooseCodec(kGigabit, kFast).has_int8());
  CHECK(ChooseCodec(10 * kGigabit, kFast).has_int8());
  // Half of the bytes are saved, but coding costs 0.15 ns for each: it pays only below 1 / 0.3 ns.
  CHECK(ChooseCodec(5.3e9, kFast).has_none());
  CHECK(ChooseCodec(40e9, kFast).has_none());
  // int8 costs more than it saves beyond bf16.
  CHECK(ChooseCodec(1e9, {{10e9, 20e9}, {3e9, 5e9}}).has_bf16());
  CHECK(ChooseCodec(kGigabit, {{10e9, 20e9}, {3e9, 5e9}}).has_int8());
}

TEST_CASE("a choice that loses more must be faster by a tenth") {
  // If coding is free, bf16 takes half of the time of no codec, and int8 takes 0.508 of bf16's.
  const double free = 1e18;
  const auto choose = [&](double bf16, double int8) {
    // Chooses by rates at which encoding takes the given shares of the time without a codec.
    return ChooseCodec(1e9, {{1e9 / bf16, free}, {1e9 / int8, free}});
  };
  CHECK(choose(0.39, 9).has_bf16());    // 0.89
  CHECK(choose(0.41, 9).has_none());    // 0.91
  CHECK(choose(0.2, 0.37).has_int8());  // 0.7; 0.624
  CHECK(choose(0.2, 0.38).has_bf16());  // 0.7; 0.634
}

TEST_CASE("what is not known is not chosen") {
  CHECK(ChooseCodec(0, kFast).has_none());
  CHECK(ChooseCodec(-1, kFast).has_none());
  CHECK(ChooseCodec(std::numeric_limits<double>::quiet_NaN(), kFast).has_none());
  CHECK(ChooseCodec(kGigabit, {}).has_none());
  CHECK(ChooseCodec(kGigabit, {kFast.bf16, {}}).has_bf16());
}

TEST_CASE("rates are measured by the clock that is given") {
  Time time;
  // Each reading of the clock takes a millisecond; 256 KiB are coded between two readings.
  const auto now = [&] { return time += std::chrono::milliseconds(1); };
  const AutoRates rates = MeasureAutoCodecs(now);
  for (const CodecRates& codec : {rates.bf16, rates.int8}) {
    CHECK(codec.encode == Approx(262144 * 1e3));
    CHECK(codec.decode == Approx(262144 * 1e3));
  }
}

TEST_CASE("auto is resolved wherever it stands") {
  v1::Compression compression;
  REQUIRE(google::protobuf::TextFormat::ParseFromString(
      "contributions {auto {}} weights {bf16 {}} layers {names: 'a' weights {auto {}}} "
      "layers {names: 'b' contributions {none {}}}",
      &compression));
  CHECK(HasAuto(compression));
  v1::Codec choice;
  choice.mutable_int8();
  ResolveAuto(choice, compression);
  CHECK_FALSE(HasAuto(compression));
  CHECK(compression.ShortDebugString() ==
        "contributions { int8 { } } weights { bf16 { } } layers { names: \"a\" weights { int8 { } "
        "} } layers { names: \"b\" contributions { none { } } }");
}

}  // namespace
}  // namespace leeway::codec_choose
