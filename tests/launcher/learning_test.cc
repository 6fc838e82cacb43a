// When a run counts as having learned nothing, for each kind of loss.
#include "launcher/finish/learning.h"

#include <cmath>
#include <limits>
#include <vector>

#include "tests/catch.h"

namespace leeway::learning {
namespace {

using Catch::Matchers::Contains;

const std::vector<float> kSmall = {0.5f, -2.0f};

Learning Judge(Score model, Score constant, uint64_t examples,
               std::vector<float> weights = kSmall) {
  return JudgeLearning(Tested{model, constant, examples}, weights);
}

// MNIST: ten classes and ten thousand examples; the most frequent class has 11.35 % of them.
const Score kMnist = {.loss = 2.3009, .accuracy = 0.1135};

TEST_CASE("the best constant of classes has their entropy, and the share of the most frequent") {
  const Score even = BestConstant(v1::LOSS_SOFTMAX_CROSS_ENTROPY, std::vector<float>{0, 1, 2, 3});
  CHECK(even.loss == Approx(std::log(4)));
  CHECK(even.accuracy == Approx(0.25));
  const Score uneven = BestConstant(v1::LOSS_SOFTMAX_CROSS_ENTROPY, std::vector<float>{7, 7, 7, 1});
  CHECK(uneven.loss == Approx(-0.75 * std::log(0.75) - 0.25 * std::log(0.25)));
  CHECK(uneven.accuracy == Approx(0.75));
}

TEST_CASE("for a logistic loss 0 and -1 are one class") {
  const Score score = BestConstant(v1::LOSS_LOGISTIC, std::vector<float>{0, -1, 1, -1});
  CHECK(score.accuracy == Approx(0.75));
  CHECK(score.loss == Approx(-0.75 * std::log(0.75) - 0.25 * std::log(0.25)));
}

TEST_CASE("the best constant of numbers is their mean, with half of their variance") {
  const Score score = BestConstant(v1::LOSS_SQUARED, std::vector<float>{1e6f + 1, 1e6f - 1});
  CHECK(score.loss == Approx(0.5));
  CHECK_FALSE(score.accuracy.has_value());
}

TEST_CASE("a network that says the same of everything has learned nothing") {
  const Learning dead = Judge({.loss = 2.3012, .accuracy = 0.1135}, kMnist, 10'000);
  CHECK(dead.learned == false);
  CHECK_THAT(dead.why, Contains("learned nothing") && Contains("11.35 %") && Contains("2.301"));
  // The model always answers another class: below chance.
  CHECK(Judge({.loss = 2.31, .accuracy = 0.0892}, kMnist, 10'000).learned == false);
}

TEST_CASE("three standard deviations above chance, or a loss 1 % lower, are something") {
  // One standard deviation is 0.0032.
  CHECK(Judge({.loss = 2.31, .accuracy = 0.1225}, kMnist, 10'000).learned == false);
  CHECK(Judge({.loss = 2.31, .accuracy = 0.1235}, kMnist, 10'000).learned == true);
  CHECK(Judge({.loss = 2.31, .accuracy = 0.1235}, kMnist, 1000).learned == false);
  CHECK(Judge({.loss = 2.28, .accuracy = 0.1135}, kMnist, 10'000).learned == false);
  CHECK(Judge({.loss = 2.27, .accuracy = 0.1135}, kMnist, 10'000).learned == true);
  // If one class has nearly all examples, its share is also what a good model reaches.
  const Score rare = {.loss = 0.056, .accuracy = 0.99};
  CHECK(Judge({.loss = 0.02, .accuracy = 0.99}, rare, 1000).learned == true);
}

TEST_CASE("a regression has learned if it beats the mean") {
  const Learning mean = Judge({.loss = 4.0, .accuracy = {}}, {.loss = 4.0, .accuracy = {}}, 100);
  CHECK(mean.learned == false);
  CHECK_THAT(mean.why, Contains("the mean"));
  CHECK(Judge({.loss = 3.9, .accuracy = {}}, {.loss = 4.0, .accuracy = {}}, 100).learned == true);
}

TEST_CASE("a run that has diverged has learned nothing, also without test data") {
  const float inf = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const float bad : {inf, -inf, nan, 1e26f, -1e26f}) {
    INFO(bad);
    CHECK(JudgeLearning({}, std::vector<float>{0.5f, bad}).learned == false);
    // Right by chance, or only in a few signs.
    CHECK(Judge({.loss = 1e20, .accuracy = 0.4}, kMnist, 10'000, {bad}).learned == false);
  }
  CHECK_THAT(JudgeLearning({}, std::vector<float>{-1e26f}).why, Contains("1.0e+26"));
  CHECK(Judge({.loss = nan, .accuracy = 0.9}, kMnist, 10'000).learned == false);
  // Values may be large: a regression of large labels needs large weights.
  CHECK(
      Judge({.loss = 1e17, .accuracy = {}}, {.loss = 1e18, .accuracy = {}}, 100, {4e9f}).learned ==
      true);
}

TEST_CASE("without test data, or with labels that are all the same, nobody can tell") {
  CHECK_FALSE(JudgeLearning({}, kSmall).learned.has_value());
  CHECK(JudgeLearning({}, kSmall).why.empty());
  const Score same = BestConstant(v1::LOSS_SOFTMAX_CROSS_ENTROPY, std::vector<float>{1, 1});
  CHECK_FALSE(Judge({.loss = 0.1, .accuracy = 1}, same, 2).learned.has_value());
}

}  // namespace
}  // namespace leeway::learning
