#include <memory>

#include "common/status.h"
#include "worker/layers/checks.h"
#include "worker/layers/registry.h"

namespace leeway {
namespace {

// y = x W + b, W [inputs x units].
class DenseLayer final : public Layer {
 public:
  DenseLayer(const v1::Dense& config, const ImageShape& input)
      : Layer(input, {1, 1, config.units()}),
        inputs_(input.elements()),
        units_(config.units()),
        bias_(config.bias()),
        initializer_(config.initializer()) {}

  std::vector<TensorPlan> tensors() const override {
    std::vector<TensorPlan> plans = {{.name = "weight",
                                      .shape = {inputs_, units_},
                                      .initializer = initializer_,
                                      .fan_in = inputs_,
                                      .fan_out = units_}};
    if (bias_) plans.push_back({.name = "bias", .shape = {units_}});
    return plans;
  }

  double flops() const override {
    return 2.0 * static_cast<double>(inputs_) * static_cast<double>(units_);
  }

  void Forward(const Pass& pass, const float* x, float* y) const override {
    if (bias_) pass.backend.FillRows(pass.batch, units_, pass.weights[1], y);
    pass.backend.Gemm({pass.batch, units_, inputs_}, Op::kAsIs, x, Op::kAsIs, pass.weights[0],
                      bias_, y);
  }

  void Backward(const Pass& pass, const float* x, const float* y, float* dy,
                float* dx) const override {
    pass.backend.Gemm({inputs_, units_, pass.batch}, Op::kTransposed, x, Op::kAsIs, dy, false,
                      pass.contributions[0]);
    if (bias_) pass.backend.SumRows(pass.batch, units_, dy, pass.contributions[1]);
    if (dx == nullptr) return;
    pass.backend.Gemm({pass.batch, inputs_, units_}, Op::kAsIs, dy, Op::kTransposed,
                      pass.weights[0], false, dx);
  }

 private:
  const size_t inputs_;
  const size_t units_;
  const bool bias_;
  const v1::Initializer initializer_;
};

}  // namespace

LayerOr MakeDense(const v1::Layer& config, const ImageShape& input) {
  RETURN_IF_ERROR(CheckRange("units", config.dense().units(), 1, 10'000'000));
  return std::make_unique<DenseLayer>(config.dense(), input);
}

}  // namespace leeway
