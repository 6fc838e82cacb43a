#include <memory>

#include "worker/layers/registry.h"

namespace leeway {
namespace {

// Computes the hyperbolic tangent.
class TanhLayer final : public Layer {
 public:
  explicit TanhLayer(const ImageShape& shape) : Layer(shape, shape) {}

  Placement placement() const override { return Placement::kInPlace; }
  bool reads_output() const override { return true; }

  void Forward(const Pass& pass, const float* x, float* y) const override {
    pass.backend.TanhForward(pass.batch * input().elements(), x, y);
  }

  void Backward(const Pass& pass, const float* x, const float* y, float* dy,
                float* dx) const override {
    if (dx != nullptr) pass.backend.TanhBackward(pass.batch * input().elements(), y, dy, dx);
  }
};

}  // namespace

LayerOr MakeTanh(const v1::Layer& config, const ImageShape& input) {
  return std::make_unique<TanhLayer>(input);
}

}  // namespace leeway
