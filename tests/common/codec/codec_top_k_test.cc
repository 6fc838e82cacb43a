#include <algorithm>
#include <cmath>
#include <numeric>

#include "common/codec/rice.h"
#include "common/codec/select.h"
#include "tests/catch.h"
#include "tests/common/codec/codec_cases.h"

namespace leeway::codec_top_k {
namespace {

using namespace leeway::testing;

// Finds them by sorting all values.
std::vector<uint32_t> Reference(const std::vector<float>& values, size_t k) {
  std::vector<uint32_t> order(values.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return std::fabs(values[a]) > std::fabs(values[b]);
  });
  order.resize(k);
  std::sort(order.begin(), order.end());
  return order;
}

TEST_CASE("the largest magnitudes are found exactly, of equals the first") {
  for (const size_t count : {1, 2, 15, 16, 17, 1000, 20000}) {
    std::vector<std::vector<float>> inputs = HardInputs(count);
    std::vector<float> few = NormalValues(count, 9);  // Many equal values.
    for (float& value : few) value = std::round(value);
    inputs.push_back(few);
    std::vector<float> rising(count);
    std::iota(rising.begin(), rising.end(), -3.0f);
    inputs.push_back(rising);
    for (const std::vector<float>& values : inputs) {
      for (const double share : {0.0, 0.001, 0.01, 0.05, 0.2, 0.5, 0.99, 1.0}) {
        const size_t k = std::clamp<size_t>(share * count, 1, count);
        INFO(k << " of " << count);
        REQUIRE(LargestMagnitudes(values, k) == Reference(values, k));
      }
    }
  }
}

uint32_t EntriesOf(double share, size_t count) {
  v1::Codec config;
  config.mutable_top_k()->set_share(share);
  const auto bytes = Encode(*MakeCodec(config).value(), NormalValues(count, 4), {});
  uint32_t entries;
  std::memcpy(&entries, bytes.data(), sizeof(entries));
  return entries;
}

TEST_CASE("top_k keeps the share, rounded up, and at least one value") {
  CHECK(EntriesOf(0.01, 700) == 7);
  CHECK(EntriesOf(0.01, 701) == 8);
  // 0.07 * 100 is a little above 7.
  CHECK(EntriesOf(0.07, 100) == 7);
  CHECK(EntriesOf(0.01, 1) == 1);
  CHECK(EntriesOf(0.1, 30) == 3);
  CHECK(EntriesOf(1e-9, 5000) == 1);
  CHECK(EntriesOf(1, 5000) == 5000);
  CHECK(EntriesOf(0.001, 0) == 0);
}

TEST_CASE("what top_k sends are the largest values, in bf16, and zeros") {
  const std::vector<float> values = NormalValues(5000, 6);
  v1::Codec config;
  config.mutable_top_k()->set_share(0.02);
  const auto bytes = Encode(*MakeCodec(config).value(), values, {});
  std::vector<float> decoded(values.size());
  REQUIRE(Decode(v1::ENCODING_TOP_K, bytes, decoded).ok());
  std::vector<float> expected(values.size());
  for (const uint32_t index : Reference(values, 100)) expected[index] = values[index];
  for (size_t i = 0; i < values.size(); ++i) {
    REQUIRE(decoded[i] == Approx(expected[i]).epsilon(1.0 / 256));
    REQUIRE((decoded[i] == 0) == (expected[i] == 0));
  }
}

TEST_CASE("indices survive Rice's code, in the best parameter's bytes") {
  RandomStream random(3, RandomPurpose::kGenerate);
  for (const size_t n : {1, 100, 5000, 70000}) {
    for (const double share : {0.0001, 0.01, 0.3, 1.0}) {
      std::vector<uint32_t> indices;
      for (uint32_t i = 0; i < n; ++i) {
        if (random.Uniform() < share) indices.push_back(i);
      }
      if (indices.empty()) indices.push_back(static_cast<uint32_t>(n - 1));
      const uint32_t best = BestRiceParameter(indices, n);
      size_t best_size = 0, least = SIZE_MAX;
      for (uint32_t parameter = 0; parameter <= kRiceParameterMax; ++parameter) {
        const size_t bound = RiceBytesMax(n, indices.size(), parameter);
        if (bound > 4'000'000) continue;
        std::vector<uint8_t> bytes(bound);
        bytes.resize(WriteRice(indices, parameter, bytes.data()));
        std::vector<uint32_t> read(indices.size());
        const absl::StatusOr<size_t> used = ReadRice(bytes, parameter, n, read);
        INFO(n << ", " << share << ", parameter " << parameter << used.status());
        REQUIRE(used.ok());
        REQUIRE(*used == bytes.size());
        REQUIRE(read == indices);
        least = std::min(least, bytes.size());
        if (parameter == best) best_size = bytes.size();
      }
      CHECK(best_size == least);
    }
  }
}

TEST_CASE("an index at 1 % takes a byte") {
  const std::vector<uint32_t> indices = LargestMagnitudes(NormalValues(262144, 8), 2622);
  const uint32_t parameter = BestRiceParameter(indices, 262144);
  std::vector<uint8_t> bytes(RiceBytesMax(262144, indices.size(), parameter));
  const double size = static_cast<double>(WriteRice(indices, parameter, bytes.data()));
  CHECK(size / static_cast<double>(indices.size()) < 1.03);
}

}  // namespace
}  // namespace leeway::codec_top_k
