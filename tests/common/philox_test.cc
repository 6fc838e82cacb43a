#include "common/philox.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "tests/catch.h"

namespace leeway::philox {
namespace {

using Block = std::array<uint32_t, 4>;

struct Moments {
  double mean;
  double variance;
};

template <typename Draw>
Moments MomentsOf(int count, Draw draw) {
  double sum = 0, squares = 0;
  for (int i = 0; i < count; ++i) {
    const double x = draw();
    sum += x;
    squares += x * x;
  }
  const double mean = sum / count;
  return {mean, squares / count - mean * mean};
}

TEST_CASE("Philox4x32-10 gives the known answers of its authors") {
  CHECK(Philox4x32({0, 0, 0, 0}, {0, 0}) == Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  const uint32_t ones = 0xffffffff;
  CHECK(Philox4x32({ones, ones, ones, ones}, {ones, ones}) ==
        Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(Philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
        Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("A stream is a function of seed, purpose and keys, and no two streams share a draw") {
  std::set<uint64_t> seen;
  size_t draws = 0;
  const auto add = [&](RandomStream stream) {
    for (int i = 0; i < 1000; ++i, ++draws) seen.insert(stream.NextU64());
  };
  for (uint64_t seed : {0ull, 1ull, 1ull << 32}) {
    for (RandomPurpose purpose : {RandomPurpose::kShuffle, RandomPurpose::kAugment}) {
      add(RandomStream(seed, purpose));
      for (uint64_t a : {0, 1, 2}) {
        add(RandomStream(seed, purpose, {a}));
        for (uint64_t b : {0, 1, 2}) add(RandomStream(seed, purpose, {a, b}));
      }
    }
  }
  // 64-bit draws: a coincidence among these has probability 1e-10.
  CHECK(seen.size() == draws);
  RandomStream a(7, RandomPurpose::kShuffle, {1, 2}), b(7, RandomPurpose::kShuffle, {1, 2});
  for (int i = 0; i < 100; ++i) CHECK(a.NextU64() == b.NextU64());
}

TEST_CASE("A copy of a stream goes on where the original is") {
  RandomStream a(7, RandomPurpose::kShuffle);
  a.NextU32();
  RandomStream b = a;
  for (int i = 0; i < 10; ++i) CHECK(a.NextU32() == b.NextU32());
}

// The bounds are five standard errors.
TEST_CASE("Uniform draws have mean 1/2, variance 1/12 and lie from 0 up to 1") {
  RandomStream stream(1, RandomPurpose::kGenerate);
  double low = 1, high = 0;
  const Moments moments = MomentsOf(200000, [&] {
    const double x = stream.Uniform();
    low = std::min(low, x);
    high = std::max(high, x);
    return x;
  });
  CHECK(std::abs(moments.mean - 0.5) < 0.0033);
  CHECK(std::abs(moments.variance - 1 / 12.0) < 0.0009);
  CHECK(low >= 0);
  CHECK(low < 1e-4);
  CHECK(high < 1);
  CHECK(high > 1 - 1e-4);
}

TEST_CASE("Normal draws have mean 0, variance 1 and the tails of a normal") {
  RandomStream stream(2, RandomPurpose::kGenerate);
  int beyond_two = 0;
  const Moments moments = MomentsOf(200000, [&] {
    const double x = stream.Normal();
    beyond_two += std::abs(x) > 2;
    return x;
  });
  CHECK(std::abs(moments.mean) < 0.0112);
  CHECK(std::abs(moments.variance - 1) < 0.0159);
  CHECK(std::abs(beyond_two / 200000.0 - 0.0455) < 0.0024);
}

TEST_CASE("Gamma draws have mean and variance equal to the shape") {
  for (double shape : {0.1, 0.5, 1.0, 3.0, 50.0}) {
    RandomStream stream(3, RandomPurpose::kGenerate, {static_cast<uint64_t>(shape * 10)});
    const int count = 100000;
    const Moments moments = MomentsOf(count, [&] {
      const double x = stream.Gamma(shape);
      REQUIRE(x >= 0);
      return x;
    });
    INFO(shape);
    CHECK(std::abs(moments.mean - shape) < 5 * std::sqrt(shape / count));
    // The variance of the sample variance is (2 shape^2 + 6 shape) / count.
    CHECK(std::abs(moments.variance - shape) <
          5 * std::sqrt((2 * shape * shape + 6 * shape) / count));
  }
}

TEST_CASE("Below is uniform and stays below, also for bounds that do not divide 2^64") {
  RandomStream stream(4, RandomPurpose::kGenerate);
  for (uint64_t bound : {1ull, 2ull, 3ull, 10ull}) {
    std::vector<int> counts(bound);
    for (int i = 0; i < 30000; ++i) ++counts.at(stream.Below(bound));
    for (int count : counts) {
      const double expected = 30000.0 / static_cast<double>(bound);
      CHECK(std::abs(count - expected) <= 5 * std::sqrt(expected));
    }
  }
  const uint64_t large = (1ull << 63) + 1;
  for (int i = 0; i < 1000; ++i) CHECK(stream.Below(large) < large);
}

TEST_CASE("A shuffle gives every permutation equally often") {
  RandomStream stream(5, RandomPurpose::kShuffle);
  std::vector<int> counts(6);
  for (int i = 0; i < 12000; ++i) {
    std::vector<int> v = {0, 1, 2};
    stream.Shuffle(v);
    ++counts.at(v[0] * 2 + (v[1] > v[2]));
  }
  for (int count : counts) CHECK(std::abs(count - 2000) < 225);
}

}  // namespace
}  // namespace leeway::philox
