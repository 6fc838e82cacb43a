#include <memory>
#include <vector>

#include "common/status.h"
#include "worker/layers/checks.h"
#include "worker/layers/registry.h"

namespace leeway {
namespace {

// Computes the sum over all pairs i < j of <v_i, v_j> x_i x_j. With s = x V, the sum is y = 1/2
// sum_f (s_f^2 - sum_i x_i^2 v_if^2) (Rendle 2010, lemma 3.1). V is [features x factors].
class FactorInteractionLayer final : public Layer {
 public:
  FactorInteractionLayer(const v1::FactorInteraction& config, const ImageShape& input)
      : Layer(input, {1, 1, 1}),
        features_(input.elements()),
        factors_(config.factors()),
        deviation_(config.deviation()) {}

  std::vector<TensorPlan> tensors() const override {
    return {{.name = "weight",
             .shape = {features_, factors_},
             .initializer = v1::INITIALIZER_NORMAL,
             .fan_in = features_,
             .fan_out = factors_,
             .deviation = deviation_}};
  }

  // The saved values are s.
  size_t saved(size_t batch) const override { return batch * factors_; }
  size_t scratch(const Backend& backend, size_t batch) const override {
    return batch * (features_ + factors_) + features_ * (factors_ + 1) + factors_;
  }
  double flops() const override {
    return 4.0 * static_cast<double>(features_) * static_cast<double>(factors_);
  }

  void Forward(const Pass& pass, const float* x, float* y) const override {
    const Scratch at(*this, pass);
    const float* const v = pass.weights[0];
    const size_t batch = pass.batch;
    pass.backend.Gemm({.m = batch, .n = factors_, .k = features_}, Op::kAsIs, x, Op::kAsIs, v,
                      false, pass.saved);
    pass.backend.Multiply(batch * factors_, pass.saved, pass.saved, at.by_factor);
    pass.backend.Fill(factors_, 0.5f, at.constants);
    pass.backend.Gemm({.m = batch, .n = 1, .k = factors_}, Op::kAsIs, at.by_factor, Op::kAsIs,
                      at.constants, false, y);
    pass.backend.Multiply(batch * features_, x, x, at.by_feature);
    SquaredNorms(pass, at, -0.5f);
    pass.backend.Gemm({.m = batch, .n = 1, .k = features_}, Op::kAsIs, at.by_feature, Op::kAsIs,
                      at.norms, true, y);
  }

  // Computes dV = x^T (dy s) - V sum_b dy x^2 and dx = dy (s V^T - x |v|^2).
  void Backward(const Pass& pass, const float* x, const float* y, float* dy,
                float* dx) const override {
    const Scratch at(*this, pass);
    const float* const v = pass.weights[0];
    const size_t batch = pass.batch;
    pass.backend.Multiply(batch * features_, x, x, at.by_feature);
    pass.backend.Gemm({.m = features_, .n = 1, .k = batch}, Op::kTransposed, at.by_feature,
                      Op::kAsIs, dy, false, at.norms);
    Spread(pass, at, features_, factors_, at.norms, at.table);
    pass.backend.Multiply(features_ * factors_, v, at.table, at.table);
    Spread(pass, at, batch, factors_, dy, at.by_factor);
    pass.backend.Multiply(batch * factors_, pass.saved, at.by_factor, at.by_factor);
    float* const dv = pass.contributions[0];
    pass.backend.Gemm({.m = features_, .n = factors_, .k = batch}, Op::kTransposed, x, Op::kAsIs,
                      at.by_factor, false, dv);
    pass.backend.AddDifference(features_ * factors_, 1, dv, at.table, nullptr, dv);
    if (dx == nullptr) return;
    SquaredNorms(pass, at, 1);
    pass.backend.Gemm({.m = batch, .n = features_, .k = 1}, Op::kAsIs, dy, Op::kAsIs, at.norms,
                      false, at.by_feature);
    pass.backend.Multiply(batch * features_, x, at.by_feature, at.by_feature);
    pass.backend.Gemm({.m = batch, .n = features_, .k = factors_}, Op::kAsIs, at.by_factor,
                      Op::kTransposed, v, false, dx);
    pass.backend.AddDifference(batch * features_, 1, dx, at.by_feature, nullptr, dx);
  }

 private:
  struct Scratch {
    Scratch(const FactorInteractionLayer& layer, const Pass& pass)
        : by_feature(pass.scratch),
          by_factor(by_feature + pass.batch * layer.features_),
          table(by_factor + pass.batch * layer.factors_),
          norms(table + layer.features_ * layer.factors_),
          constants(norms + layer.features_) {}
    // The shapes of these vectors are, in order: [batch x features], [batch x factors], [features x
    // factors], [features], [factors].
    float* by_feature;
    float* by_factor;
    float* table;
    float* norms;
    float* constants;
  };

  // Computes norms = scale |v_i|^2.
  void SquaredNorms(const Pass& pass, const Scratch& at, float scale) const {
    pass.backend.Multiply(features_ * factors_, pass.weights[0], pass.weights[0], at.table);
    pass.backend.Fill(factors_, scale, at.constants);
    pass.backend.Gemm({.m = features_, .n = 1, .k = factors_}, Op::kAsIs, at.table, Op::kAsIs,
                      at.constants, false, at.norms);
  }

  // Copies `column` [rows] to each column of out [rows x columns].
  void Spread(const Pass& pass, const Scratch& at, size_t rows, size_t columns, const float* column,
              float* out) const {
    pass.backend.Fill(columns, 1, at.constants);
    pass.backend.Gemm({.m = rows, .n = columns, .k = 1}, Op::kAsIs, column, Op::kAsIs, at.constants,
                      false, out);
  }

  const size_t features_;
  const size_t factors_;
  const double deviation_;
};

}  // namespace

LayerOr MakeFactorInteraction(const v1::Layer& config, const ImageShape& input) {
  RETURN_IF_ERROR(CheckRange("factors", config.factor_interaction().factors(), 1, 65'536));
  return std::make_unique<FactorInteractionLayer>(config.factor_interaction(), input);
}

}  // namespace leeway
