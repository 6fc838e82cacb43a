// The layers that apply an activation function to each element.
#include <memory>

#include "worker/layers/registry.h"

namespace leeway {
namespace {

class ActivationLayer final : public Layer {
 public:
  ActivationLayer(const ImageShape& shape, Activation activation)
      : Layer(shape, shape), activation_(activation) {}

  Placement placement() const override {
    return reads_output() ? Placement::kInPlace : Placement::kOwn;
  }
  bool reads_output() const override { return SlopeReadsOutput(activation_); }

  void Forward(const Pass& pass, const float* x, float* y) const override {
    pass.backend.ActivationForward(activation_, pass.batch * input().elements(), x, y);
  }

  void Backward(const Pass& pass, const float* x, const float* y, float* dy,
                float* dx) const override {
    if (dx == nullptr) return;
    pass.backend.ActivationBackward(activation_, pass.batch * input().elements(),
                                    reads_output() ? y : x, dy, dx);
  }

 private:
  const Activation activation_;
};

}  // namespace

LayerOr MakeRelu(const v1::Layer& config, const ImageShape& input) {
  return std::make_unique<ActivationLayer>(input, Activation::kRelu);
}

LayerOr MakeRelu6(const v1::Layer& config, const ImageShape& input) {
  return std::make_unique<ActivationLayer>(input, Activation::kRelu6);
}

LayerOr MakeTanh(const v1::Layer& config, const ImageShape& input) {
  return std::make_unique<ActivationLayer>(input, Activation::kTanh);
}

LayerOr MakeGelu(const v1::Layer& config, const ImageShape& input) {
  return std::make_unique<ActivationLayer>(
      input, config.gelu().tanh() ? Activation::kTanhGelu : Activation::kGelu);
}

LayerOr MakeSilu(const v1::Layer& config, const ImageShape& input) {
  return std::make_unique<ActivationLayer>(input, Activation::kSilu);
}

}  // namespace leeway
