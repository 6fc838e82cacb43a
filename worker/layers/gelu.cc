#include <memory>

#include "worker/layers/registry.h"

namespace leeway {
namespace {

// x Phi(x) with the exact Phi: Hendrycks and Gimpel 2016, "Gaussian error linear units",
// equation 1.
class GeluLayer final : public Layer {
 public:
  explicit GeluLayer(const ImageShape& shape) : Layer(shape, shape) {}

  void Forward(const Pass& pass, const float* x, float* y) const override {
    pass.backend.GeluForward(pass.batch * input().elements(), x, y);
  }

  void Backward(const Pass& pass, const float* x, const float* y, float* dy,
                float* dx) const override {
    if (dx != nullptr) pass.backend.GeluBackward(pass.batch * input().elements(), x, dy, dx);
  }
};

// x / (1 + exp(-x)).
class SiluLayer final : public Layer {
 public:
  explicit SiluLayer(const ImageShape& shape) : Layer(shape, shape) {}

  void Forward(const Pass& pass, const float* x, float* y) const override {
    pass.backend.SiluForward(pass.batch * input().elements(), x, y);
  }

  void Backward(const Pass& pass, const float* x, const float* y, float* dy,
                float* dx) const override {
    if (dx != nullptr) pass.backend.SiluBackward(pass.batch * input().elements(), x, dy, dx);
  }
};

}  // namespace

LayerOr MakeSilu(const v1::Layer& config, const ImageShape& input) {
  return std::make_unique<SiluLayer>(input);
}

LayerOr MakeGelu(const v1::Layer& config, const ImageShape& input) {
  return std::make_unique<GeluLayer>(input);
}

}  // namespace leeway
