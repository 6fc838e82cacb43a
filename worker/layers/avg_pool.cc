#include <memory>

#include "absl/status/status.h"
#include "common/status.h"
#include "worker/layers/pool.h"
#include "worker/layers/registry.h"

namespace leeway {
namespace {

// Computes the mean of each window.
class AvgPoolLayer final : public Layer {
 public:
  explicit AvgPoolLayer(const PoolShape& shape)
      : Layer(shape.input, shape.output()), shape_(shape) {}

  void Forward(const Pass& pass, const float* x, float* y) const override {
    pass.backend.AvgPoolForward(shape_, pass.batch, x, y);
  }

  void Backward(const Pass& pass, const float* x, const float* y, float* dy,
                float* dx) const override {
    if (dx != nullptr) pass.backend.AvgPoolBackward(shape_, pass.batch, dy, dx);
  }

 private:
  const PoolShape shape_;
};

}  // namespace

LayerOr MakeAvgPool(const v1::Layer& config, const ImageShape& input) {
  ASSIGN_OR_RETURN(const PoolShape shape, MakePoolShape(config.avg_pool(), input));
  if (shape.padding > 0) {
    return absl::InvalidArgumentError("avg_pool does not support padding: remove it");
  }
  return std::make_unique<AvgPoolLayer>(shape);
}

LayerOr MakeGlobalAvgPool(const v1::Layer& config, const ImageShape& input) {
  return std::make_unique<AvgPoolLayer>(
      PoolShape{.input = input, .size = input.height, .stride = 1, .width = input.width});
}

}  // namespace leeway
