// Mixup: which examples of a batch are mixed, and which share each of them has.
#include "worker/data/mixer.h"

#include <algorithm>
#include <cmath>

#include "tests/catch.h"

namespace leeway::mixer {
namespace {

Mixer WithAlpha(double alpha) {
  v1::Augment options;
  options.set_mixup(alpha);
  return Mixer(options);
}

RandomStream Draws(uint64_t step) { return {7, RandomPurpose::kMix, {step, 0}}; }

// Example i has the features i and 10 i, and the label i.
Batch Numbered(size_t size) {
  Batch batch{size, {}, {}};
  for (size_t i = 0; i < size; ++i) {
    const auto number = static_cast<float>(i);
    batch.features.insert(batch.features.end(), {number, 10 * number});
    batch.labels.push_back(number);
  }
  return batch;
}

TEST_CASE("Each example is mixed with the one whose label is beside its own") {
  const size_t size = GENERATE(1u, 2u, 3u, 16u, 100u);
  for (uint64_t step = 0; step < 20; ++step) {
    Batch batch = Numbered(size);
    WithAlpha(1).Apply(Draws(step), batch);
    CAPTURE(size, step, batch.share);
    CHECK(batch.size == size);
    CHECK(batch.labels == Numbered(size).labels);
    CHECK(batch.share >= 0);
    CHECK(batch.share <= 1);
    REQUIRE(batch.other_labels.size() == size);
    for (size_t i = 0; i < size; ++i) {
      const float expected =
          batch.share * batch.labels[i] + (1 - batch.share) * batch.other_labels[i];
      CHECK(batch.features[2 * i] == Approx(expected).margin(1e-5));
      CHECK(batch.features[2 * i + 1] == Approx(10 * expected).margin(1e-4));
    }
    std::vector<float> partners = batch.other_labels;
    std::sort(partners.begin(), partners.end());
    CHECK(partners == batch.labels);
  }
}

TEST_CASE("What is mixed is a function of the stream") {
  Batch a = Numbered(9), b = Numbered(9), other = Numbered(9);
  WithAlpha(0.4).Apply(Draws(3), a);
  WithAlpha(0.4).Apply(Draws(3), b);
  WithAlpha(0.4).Apply(Draws(4), other);
  CHECK(a.features == b.features);
  CHECK(a.other_labels == b.other_labels);
  CHECK(a.share == b.share);
  CHECK(a.share != other.share);
  CHECK(a.other_labels != other.other_labels);
}

TEST_CASE("Without alpha, and in an empty batch, nothing is mixed") {
  Batch batch = Numbered(5);
  WithAlpha(0).Apply(Draws(1), batch);
  CHECK(batch.features == Numbered(5).features);
  CHECK(batch.other_labels.empty());
  CHECK(batch.share == 1);
  Batch empty;
  WithAlpha(1).Apply(Draws(1), empty);
  CHECK(empty.other_labels.empty());
}

TEST_CASE("Shares are those of Beta(alpha, alpha), for any alpha") {
  const double alpha = GENERATE(1e-9, 0.01, 0.2, 1.0, 5.0, 1000.0);
  constexpr int kDraws = 4000;
  double sum = 0, squares = 0;
  for (int step = 0; step < kDraws; ++step) {
    Batch batch = Numbered(1);
    WithAlpha(alpha).Apply(Draws(step), batch);
    REQUIRE(std::isfinite(batch.share));
    const double apart = static_cast<double>(batch.share) - 0.5;
    sum += apart;
    squares += apart * apart;
  }
  CAPTURE(alpha);
  // The mean is 1/2 and the variance 1 / (4 (2 alpha + 1)). The limits are five standard errors,
  // and 15 % for the variance.
  const double variance = 1 / (4 * (2 * alpha + 1));
  CHECK(std::abs(sum / kDraws) < 5 * std::sqrt(variance / kDraws));
  CHECK(squares / kDraws == Approx(variance).epsilon(0.15));
}

}  // namespace
}  // namespace leeway::mixer
