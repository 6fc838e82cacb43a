#include <memory>

#include "worker/layers/registry.h"

namespace leeway {
namespace {

// Computes max(x, 0).
class ReluLayer final : public Layer {
 public:
  explicit ReluLayer(const ImageShape& shape) : Layer(shape, shape) {}

  Placement placement() const override { return Placement::kInPlace; }
  bool reads_output() const override { return true; }

  void Forward(const Pass& pass, const float* x, float* y) const override {
    pass.backend.ReluForward(pass.batch * input().elements(), x, y);
  }

  void Backward(const Pass& pass, const float* x, const float* y, float* dy,
                float* dx) const override {
    if (dx != nullptr) pass.backend.ReluBackward(pass.batch * input().elements(), y, dy, dx);
  }
};

// Computes min(max(x, 0), 6).
class Relu6Layer final : public Layer {
 public:
  explicit Relu6Layer(const ImageShape& shape) : Layer(shape, shape) {}

  Placement placement() const override { return Placement::kInPlace; }
  bool reads_output() const override { return true; }

  void Forward(const Pass& pass, const float* x, float* y) const override {
    pass.backend.Relu6Forward(pass.batch * input().elements(), x, y);
  }

  void Backward(const Pass& pass, const float* x, const float* y, float* dy,
                float* dx) const override {
    if (dx != nullptr) pass.backend.Relu6Backward(pass.batch * input().elements(), y, dy, dx);
  }
};

}  // namespace

LayerOr MakeRelu6(const v1::Layer& config, const ImageShape& input) {
  return std::make_unique<Relu6Layer>(input);
}

LayerOr MakeRelu(const v1::Layer& config, const ImageShape& input) {
  return std::make_unique<ReluLayer>(input);
}

}  // namespace leeway
