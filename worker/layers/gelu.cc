#include <memory>

#include "worker/layers/registry.h"

namespace leeway {
namespace {

// Computes x Phi(x) (Hendrycks and Gimpel 2016, "Gaussian error linear units", equation 1), or the
// approximation of x Phi(x) by tanh.
class GeluLayer final : public Layer {
 public:
  GeluLayer(const ImageShape& shape, bool tanh) : Layer(shape, shape), tanh_(tanh) {}

  void Forward(const Pass& pass, const float* x, float* y) const override {
    const size_t count = pass.batch * input().elements();
    tanh_ ? pass.backend.TanhGeluForward(count, x, y) : pass.backend.GeluForward(count, x, y);
  }

  void Backward(const Pass& pass, const float* x, const float* y, float* dy,
                float* dx) const override {
    if (dx == nullptr) return;
    const size_t count = pass.batch * input().elements();
    tanh_ ? pass.backend.TanhGeluBackward(count, x, dy, dx)
          : pass.backend.GeluBackward(count, x, dy, dx);
  }

 private:
  const bool tanh_;
};

// Computes x / (1 + exp(-x)).
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
  return std::make_unique<GeluLayer>(input, config.gelu().tanh());
}

}  // namespace leeway
