// The example plugin's layer and loss against their formulas and central differences, in double.
#include <cmath>
#include <functional>
#include <vector>

#include "tests/common/plugins/support.h"
#include "tests/worker/model/support.h"
#include "worker/layers/custom.h"
#include "worker/model/custom_loss.h"

namespace leeway::testing::custom_gradient {
namespace {

constexpr double kStep = 1e-5;
constexpr double kTolerance = 1e-5;

double Derivative(const std::function<double(double)>& function, double at) {
  return (function(at + kStep) - function(at - kStep)) / (2 * kStep);
}

double Swish(double x, double beta) { return x / (1 + std::exp(-beta * x)); }

double Huber(double error, double delta) {
  const double size = std::abs(error);
  return size <= delta ? error * error / 2 : delta * (size - delta / 2);
}

constexpr size_t kBatch = 3;
const ImageShape kShape{2, 3, 4};

struct LayerPass {
  std::vector<float> x, beta, dy;
  std::vector<float> y, dx, dbeta;
};

LayerPass RunSwish(bool wants_dx) {
  const auto backend = TestBackend();
  const size_t count = kBatch * kShape.elements();
  LayerPass run{RandomValues(count, 1, 2), RandomValues(kShape.channels, 2), RandomValues(count, 3),
                std::vector<float>(count), std::vector<float>(count, 7),     {7, 7, 7, 7}};
  const auto layer =
      MakeCustomLayer(FromText<v1::Custom>("name: 'swish'"), kShape, LoadedPlugins({"example"}));
  REQUIRE(layer.ok());
  std::vector<float> saved((*layer)->saved(kBatch));
  const float* const weights[] = {run.beta.data()};
  float* const gradients[] = {run.dbeta.data()};
  const Pass pass{.backend = *backend,
                  .batch = kBatch,
                  .training = true,
                  .draw = {},
                  .weights = weights,
                  .contributions = gradients,
                  .saved = saved.data()};
  (*layer)->Forward(pass, run.x.data(), run.y.data());
  (*layer)->Backward(pass, run.x.data(), run.y.data(), run.dy.data(),
                     wants_dx ? run.dx.data() : nullptr);
  return run;
}

TEST_CASE("the example's layer is its formula, and its gradients are those of the formula") {
  const LayerPass run = RunSwish(true);
  std::vector<double> y, dx, dbeta(kShape.channels);
  for (size_t i = 0; i < run.x.size(); ++i) {
    const size_t channel = i % kShape.channels;
    const double x = run.x[i], beta = run.beta[channel];
    y.push_back(Swish(x, beta));
    dx.push_back(run.dy[i] * Derivative([&](double at) { return Swish(at, beta); }, x));
    dbeta[channel] += run.dy[i] * Derivative([&](double at) { return Swish(x, at); }, beta);
  }
  CHECK(RelativeError(run.y, y) < kTolerance);
  CHECK(RelativeError(run.dx, dx) < kTolerance);
  CHECK(RelativeError(run.dbeta, dbeta) < kTolerance);
}

TEST_CASE(
    "the example's layer computes its weights' gradient also where nobody wants the input's") {
  CHECK(RunSwish(false).dbeta == RunSwish(true).dbeta);
  CHECK(RunSwish(false).dx == std::vector<float>(kBatch * kShape.elements(), 7));
}

TEST_CASE("the example's loss is its formula, and its gradient that of the mean") {
  const auto backend = TestBackend();
  const size_t rows = 40;
  const double delta = 0.75;
  const std::vector<float> scores = RandomValues(rows, 1), labels = RandomValues(rows, 2);
  const auto loss =
      MakeCustomLoss(FromText<v1::Custom>("name: 'huber' options { key: 'delta' value: 0.75 }"),
                     LoadedPlugins({"example"}));
  REQUIRE(loss.ok());
  LossSum sum;
  std::vector<float> gradient(rows);
  REQUIRE((*loss)
              ->Compute(*backend, rows, 1, scores.data(), labels.data(), &sum, gradient.data())
              .ok());
  double expected = 0;
  std::vector<double> slopes;
  for (size_t i = 0; i < rows; ++i) {
    const double error = double{scores[i]} - labels[i];
    expected += Huber(error, delta);
    slopes.push_back(Derivative([&](double at) { return Huber(at, delta); }, error) / rows);
  }
  CHECK(sum.loss == Approx(expected).epsilon(1e-12));
  CHECK(RelativeError(gradient, slopes) < kTolerance);
}

}  // namespace
}  // namespace leeway::testing::custom_gradient
