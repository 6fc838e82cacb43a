// The sum of contributions: the tree of its definition, wherever contributions and tiles are cut.
#include <algorithm>
#include <bit>
#include <string>
#include <vector>

#include "common/update/combine.h"
#include "tests/catch.h"
#include "tests/common/update/contributions.h"
#include "tests/same_bits.h"

namespace leeway::update_combine {
namespace {

using testing::Contributions;
using testing::Draw;
using testing::SameBits;

TEST_CASE("coefficients are the shares of the examples, and zeros where there are none") {
  const std::vector<uint64_t> examples = {1, 0, 3};
  REQUIRE(MeanCoefficients(examples) == std::vector<float>{0.25f, 0, 0.75f});
  REQUIRE(MeanCoefficients(std::vector<uint64_t>{0, 0}) == std::vector<float>{0, 0});
  REQUIRE(MeanCoefficients(std::vector<uint64_t>{5}) == std::vector<float>{1});
  REQUIRE(MeanCoefficients(std::vector<uint64_t>{0, 1}) == std::vector<float>{0, 1});
  const uint64_t most = ~uint64_t{0};
  REQUIRE(MeanCoefficients(std::vector<uint64_t>{most, most}) == std::vector<float>{0.5f, 0.5f});
}

TEST_CASE("the combined sum does not depend on where tiles are cut") {
  constexpr size_t kCount = 3000;
  for (size_t k = 1; k <= 9; ++k) {
    const Contributions c(k, kCount, k % 2 == 0);
    const std::vector<float> centre = Draw(kCount, 77);
    for (const std::string kind : {"sum", "elastic", "averaged"}) {
      std::vector<std::vector<float>> results;
      for (size_t tile : {1u, 7u, 64u, 1000u, 1024u}) {
        Combiner combiner = kind == "sum" ? Combiner(c.pointers, c.coefficients)
                            : kind == "elastic"
                                ? Combiner::Differences(c.pointers, centre.data())
                                : Combiner::Differences(c.pointers, c.coefficients, centre.data());
        std::vector<float>& sum = results.emplace_back();
        for (size_t offset = 0; offset < kCount; offset += tile) {
          const size_t count = std::min<size_t>(tile, kCount - offset);
          const float* values = combiner.Tile(offset, count);
          sum.insert(sum.end(), values, values + count);
        }
        CAPTURE(k, kind, tile);
        REQUIRE(SameBits(sum, results.front()));
      }
    }
  }
}

TEST_CASE("the tree is ((0 1) (2 3)) 4 for five contributions, whatever their values") {
  // Sums that show the order of additions: 1 is lost next to 1e8.
  const float values[] = {1e8f, 1, -1e8f, 1, 1};
  std::vector<FloatPayload> payloads;
  for (const float& value : values) payloads.push_back(FloatPayload::Of({&value, 1}));
  std::vector<const FloatPayload*> pointers;
  for (const FloatPayload& payload : payloads) pointers.push_back(&payload);
  const std::vector<float> ones(5, 1.0f);
  Combiner combiner(pointers, ones);
  REQUIRE(combiner.Tile(0, 1)[0] == ((1e8f + 1) + (-1e8f + 1)) + 1);
}

// Returns the sum of contributions [first, first + k) at element j, by the tree's definition.
float TreeSum(const Contributions& c, size_t first, size_t k, size_t j) {
  if (k == 1) return c.coefficients[first] * c.values[first][j];
  const size_t left = std::bit_floor(k - 1);
  return TreeSum(c, first, left, j) + TreeSum(c, first + left, k - left, j);
}

TEST_CASE("any number of contributions, however split, is summed by the tree of the definition") {
  constexpr size_t kCount = 1700;
  for (size_t k : {1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 15, 16, 17, 23, 31, 33}) {
    const Contributions c(k, kCount, k % 2 == 1);
    Combiner combiner(c.pointers, c.coefficients);
    for (size_t offset = 0, count; offset < kCount; offset += count) {
      count = combiner.Run(offset, std::min<size_t>(300, kCount - offset));
      CAPTURE(k, offset, count);
      REQUIRE(count >= 1);
      const float* sum = combiner.Tile(offset, count);
      size_t wrong = 0;
      for (size_t j = 0; j < count; ++j) wrong += sum[j] != TreeSum(c, 0, k, offset + j);
      REQUIRE(wrong == 0);
    }
  }
}

TEST_CASE("a lone contribution is used where it lies") {
  const Contributions c(1, 2048, false);
  Combiner combiner(c.pointers, c.coefficients);
  REQUIRE(combiner.Tile(1024, 1000) == c.values[0].data() + 1024);
}

}  // namespace
}  // namespace leeway::update_combine
