#include "worker/model/regression_error.h"

#include <random>
#include <vector>

#include "tests/catch.h"

namespace leeway::regression_error {
namespace {

struct Pair {
  double prediction;
  double label;
};

RegressionError Sum(const std::vector<Pair>& pairs, size_t batch) {
  RegressionError all;
  for (size_t first = 0; first < pairs.size(); first += batch) {
    RegressionError part;
    for (size_t i = first; i < std::min(pairs.size(), first + batch); ++i) {
      part.Add(pairs[i].prediction, pairs[i].label);
    }
    all.Add(part);
  }
  return all;
}

}  // namespace

TEST_CASE("The errors of a regression are those of all its examples, however they are divided") {
  // The labels are far from zero and close together: sums of their squares would cancel out.
  for (const double offset : {0.0, 1e3, -1e7}) {
    std::mt19937 bits(7);
    std::vector<Pair> pairs;
    for (int i = 0; i < 1031; ++i) {
      const double label = offset + static_cast<double>(bits() % 1000) / 1000;
      pairs.push_back({label + static_cast<double>(bits() % 100) / 500 - 0.1, label});
    }
    long double mean = 0, absolute = 0, squared = 0, deviation = 0;
    for (const Pair& pair : pairs) mean += pair.label;
    mean /= static_cast<long double>(pairs.size());
    for (const auto& [prediction, label] : pairs) {
      absolute += std::abs(static_cast<long double>(prediction) - label);
      squared += (static_cast<long double>(prediction) - label) * (prediction - label);
      deviation += (label - mean) * (label - mean);
    }
    const auto mae = static_cast<double>(absolute / static_cast<long double>(pairs.size()));
    const auto r2 = static_cast<double>(1 - squared / deviation);
    for (const size_t batch : {1u, 7u, 256u, 1030u, 5000u}) {
      const RegressionError error = Sum(pairs, batch);
      CHECK(*error.mae() == Approx(mae).epsilon(1e-9));
      CHECK(*error.r2() == Approx(r2).epsilon(1e-9));
    }
  }
}

TEST_CASE("Where there is nothing to compare, there is no error") {
  CHECK_FALSE(RegressionError().mae().has_value());
  CHECK_FALSE(RegressionError().r2().has_value());
  const RegressionError same = Sum({{1, 5}, {2, 5}, {9, 5}}, 2);
  CHECK(*same.mae() == Approx(11.0 / 3));
  CHECK_FALSE(same.r2().has_value());
}

}  // namespace leeway::regression_error
