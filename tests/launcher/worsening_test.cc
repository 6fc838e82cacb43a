// When a run counts as having become much worse while it trained.
#include "launcher/supervision/worsening.h"

#include <cmath>
#include <optional>
#include <vector>

#include "tests/catch.h"

namespace leeway::worsening {
namespace {

struct Evaluated {
  uint64_t clock = 0;
  double loss = 0;
  std::optional<double> accuracy;
};

std::string Was(const std::vector<Evaluated>& evaluations) {
  std::vector<v1::EvaluationMetrics> all;
  for (const Evaluated& each : evaluations) {
    v1::EvaluationMetrics& metrics = all.emplace_back();
    metrics.set_clock(each.clock);
    metrics.set_test_loss(each.loss);
    if (each.accuracy) metrics.set_test_accuracy(*each.accuracy);
  }
  return MuchWorse(all);
}

TEST_CASE("an accuracy 10 points below the best one is much worse") {
  CHECK(Was({}).empty());
  CHECK(Was({{100, 0.5, 0.9}}).empty());
  CHECK(Was({{100, 0.5, 0.9}, {200, 0.6, 0.81}}).empty());
  CHECK(Was({{100, 0.5, 0.9}, {200, 0.4, 0.95}, {300, 0.6, 0.84}}) ==
        "test accuracy was 95.00 % at clock 200");
  CHECK(Was({{100, 0.5, 0.9}, {1200, NAN, 0.1}}) == "test accuracy was 90.00 % at clock 100");
}

TEST_CASE("a model that only becomes overconfident is not much worse") {
  CHECK(Was({{100, 2.3, 0.1}, {200, 0.1, 0.97}, {300, 0.5, 0.96}}).empty());
}

TEST_CASE("without classes it is a loss that has lost more than half of what was reached") {
  CHECK(Was({{100, 10, {}}, {200, 2, {}}, {300, 5, {}}}).empty());
  CHECK(Was({{100, 10, {}}, {200, 2, {}}, {300, 7, {}}}) == "test loss was 2.0000 at clock 200");
  // A loss that fluctuates around its final value.
  CHECK(Was({{100, 1.1, {}}, {200, 1.0, {}}, {300, 1.2, {}}}).empty());
  CHECK(Was({{100, 10, {}}, {200, NAN, {}}}) == "test loss was 10.0000 at clock 100");
  CHECK(Was({{100, NAN, {}}, {200, 3, {}}}).empty());
}

}  // namespace
}  // namespace leeway::worsening
