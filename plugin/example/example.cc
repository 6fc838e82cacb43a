// An example of a plugin (docs/plugins.md): a layer, a loss and an update rule.
//
//   g++ -std=c++20 -O3 -shared -fPIC -I../ example.cc -o libexample.so
#include <cmath>

#include "leeway/plugin.h"

namespace {

using namespace leeway::plugin;  // This file contains only the plugin.

float Sigmoid(float x) { return 1 / (1 + std::exp(-x)); }

// y = x sigmoid(b x), where each channel trains its b (Ramachandran et al. 2017, arXiv:1710.05941).
class Swish final : public Layer {
 public:
  Swish(const Shape& shape, double beta) : shape_(shape), beta_(beta) {}

  Shape output() const override { return shape_; }
  std::vector<Tensor> tensors() const override {
    return {{"beta", {shape_.channels}, TensorKind::kBias, Start::Constant(beta_)}};
  }
  // Forward saves the sigmoids for Backward.
  size_t saved(size_t batch) const noexcept override { return batch * shape_.elements(); }

  void Forward(const Pass& pass, const float* x, float* y) const override {
    const float* const beta = pass.weights[0];
    for (size_t i = 0; i < pass.batch * shape_.elements(); ++i) {
      pass.saved[i] = Sigmoid(beta[i % shape_.channels] * x[i]);
      y[i] = x[i] * pass.saved[i];
    }
  }

  void Backward(const Pass& pass, const float* x, const float* y, const float* dy,
                float* dx) const override {
    const float* const beta = pass.weights[0];
    std::vector<double> dbeta(shape_.channels);
    for (size_t i = 0; i < pass.batch * shape_.elements(); ++i) {
      const size_t channel = i % shape_.channels;
      const float s = pass.saved[i];
      const float slope = x[i] * s * (1 - s);  // The derivative of y with respect to b x.
      dbeta[channel] += double{dy[i]} * x[i] * slope;
      if (dx != nullptr) dx[i] = dy[i] * (s + beta[channel] * slope);
    }
    for (size_t c = 0; c < dbeta.size(); ++c) pass.gradients[0][c] = static_cast<float>(dbeta[c]);
  }

 private:
  const Shape shape_;
  const double beta_;
};

// With e = score - label, the loss is e^2 / 2 up to |e| = delta, and a straight line beyond (Huber
// 1964).
class Huber final : public Loss {
 public:
  explicit Huber(double delta) : delta_(delta) {}

  double Compute(const Scores& s, float* gradient) const override {
    double sum = 0;
    for (size_t i = 0; i < s.rows; ++i) {
      const double e = double{s.scores[i]} - s.labels[i], size = std::abs(e);
      const bool near = size <= delta_;
      sum += near ? e * e / 2 : delta_ * (size - delta_ / 2);
      const double slope = near ? e : std::copysign(delta_, e);
      if (gradient != nullptr) gradient[i] = static_cast<float>(slope / double(s.rows));
    }
    return sum;
  }

 private:
  const double delta_;
};

// m = beta m + (1 - beta) g; x -= rate (sign(m) + decay x) (Bernstein et al. 2018,
// arXiv:1802.04434: Signum).
class Signum final : public UpdateRule {
 public:
  explicit Signum(const Options& options)
      : beta_(static_cast<float>(options["beta"])), decay_(options["weight_decay"]) {}

  std::vector<Slot> slots() const override { return {{"momentum", 0}}; }

  void Apply(const Step& step, const Elements& e) const noexcept override {
    const float kept = static_cast<float>(1 - step.learning_rate * decay_ * step.decay);
    for (size_t i = 0; i < e.count; ++i) {
      const float m = beta_ * e.slots_in[0][i] + (1 - beta_) * e.gradient[i];
      const float sign = static_cast<float>((m > 0) - (m < 0));
      e.weights_out[i] = kept * e.weights_in[i] - step.learning_rate * sign;
      e.slots_out[0][i] = m;
    }
  }

 private:
  const float beta_;
  const double decay_;
};

}  // namespace

LEEWAY_PLUGIN(registry) {
  registry.Add(
      LayerSpec{.name = "swish",
                .options = {{.name = "beta", .about = "where each channel's b starts", .value = 1}},
                .make = [](const Options& options, const Shape& input) {
                  return std::make_unique<Swish>(input, options["beta"]);
                }});
  registry.Add(LossSpec{
      .name = "huber",
      .labels = Labels::kNumbers,
      .options = {{.name = "delta", .about = "where the line begins", .value = 1, .above = 0}},
      .make = [](const Options& options) { return std::make_unique<Huber>(options["delta"]); }});
  registry.Add(RuleSpec{
      .name = "signum",
      .options = {{.name = "beta", .about = "share of the old momentum", .min = 0, .below = 1},
                  {.name = "weight_decay", .about = "per update", .value = 0, .min = 0}},
      .make = [](const Options& options) { return std::make_unique<Signum>(options); }});
}
