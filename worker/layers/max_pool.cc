#include <memory>

#include "common/status.h"
#include "worker/layers/pool.h"
#include "worker/layers/registry.h"

namespace leeway {
namespace {

// Computes the largest value of each window. If several values are the largest, the gradient goes
// to the first of them.
class MaxPoolLayer final : public Layer {
 public:
  explicit MaxPoolLayer(const PoolShape& shape)
      : Layer(shape.input, shape.output()), shape_(shape) {}

  // The saved values are the positions of the maxima within the windows.
  size_t saved(size_t batch) const override { return batch * output().elements(); }

  void Forward(const Pass& pass, const float* x, float* y) const override {
    pass.backend.MaxPoolForward(shape_, pass.batch, x, pass.training ? pass.saved : nullptr, y);
  }

  void Backward(const Pass& pass, const float* x, const float* y, float* dy,
                float* dx) const override {
    if (dx != nullptr) pass.backend.MaxPoolBackward(shape_, pass.batch, pass.saved, dy, dx);
  }

 private:
  const PoolShape shape_;
};

}  // namespace

LayerOr MakeMaxPool(const v1::Layer& config, const ImageShape& input) {
  ASSIGN_OR_RETURN(const PoolShape shape, MakePoolShape(config.max_pool(), input));
  return std::make_unique<MaxPoolLayer>(shape);
}

}  // namespace leeway
