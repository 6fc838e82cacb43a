#include <memory>

#include "worker/layers/registry.h"

namespace leeway {
namespace {

// Returns the image as one row of features, in (row, column, channel) order.
class FlattenLayer final : public Layer {
 public:
  explicit FlattenLayer(const ImageShape& input)
      : Layer(input, {1, 1, static_cast<uint32_t>(input.elements())}) {}

  Placement placement() const override { return Placement::kView; }
  void Forward(const Pass&, const float*, float*) const override {}
  void Backward(const Pass&, const float*, const float*, float*, float*) const override {}
};

}  // namespace

LayerOr MakeFlatten(const v1::Layer& config, const ImageShape& input) {
  return std::make_unique<FlattenLayer>(input);
}

}  // namespace leeway
