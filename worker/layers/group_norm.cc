#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "worker/layers/checks.h"
#include "worker/layers/registry.h"

namespace leeway {
namespace {

// Group normalisation over groups of channels (Wu and He 2018), and layer normalisation over all
// channels of a pixel (Ba, Kiros and Hinton 2016). In training and in evaluation, it normalises by
// the mean and the biased variance within an example.
class GroupNormLayer final : public Layer {
 public:
  // `shape` is the shape of one example.
  GroupNormLayer(const ImageShape& image, const GroupNormShape& shape, bool bias)
      : Layer(image, image), shape_(shape), bias_(bias) {}

  std::vector<TensorPlan> tensors() const override {
    std::vector<TensorPlan> plans = {{.name = "weight",
                                      .shape = {shape_.channels},
                                      .kind = v1::TENSOR_KIND_NORM,
                                      .constant = 1}};
    if (bias_) {
      plans.push_back({.name = "bias", .shape = {shape_.channels}, .kind = v1::TENSOR_KIND_NORM});
    }
    return plans;
  }

  // The saved values are the means and 1 / standard deviations.
  size_t saved(size_t batch) const override { return 2 * Of(batch).means(); }
  size_t scratch(const Backend& backend, size_t batch) const override { return saved(batch); }

  void Forward(const Pass& pass, const float* x, float* y) const override {
    pass.backend.GroupNormForward(Of(pass.batch), pass.weights[0],
                                  bias_ ? pass.weights[1] : nullptr, x, pass.saved, y);
  }

  void Backward(const Pass& pass, const float* x, const float* y, float* dy,
                float* dx) const override {
    pass.backend.GroupNormBackward(Of(pass.batch), pass.weights[0], x, pass.saved, dy, pass.scratch,
                                   pass.contributions[0], bias_ ? pass.contributions[1] : nullptr,
                                   dx);
  }

 private:
  GroupNormShape Of(size_t batch) const {
    GroupNormShape shape = shape_;
    shape.batch *= batch;
    return shape;
  }

  const GroupNormShape shape_;
  const bool bias_;
};

absl::Status CheckEpsilon(double epsilon) {
  if (epsilon > 0 && epsilon <= 1) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("epsilon ", epsilon, " must be in (0, 1]"));
}

}  // namespace

LayerOr MakeLayerNorm(const v1::Layer& config, const ImageShape& input) {
  const v1::LayerNorm& norm = config.layer_norm();
  RETURN_IF_ERROR(CheckEpsilon(norm.epsilon()));
  const GroupNormShape shape{.batch = size_t{input.height} * input.width,
                             .channels = input.channels,
                             .epsilon = static_cast<float>(norm.epsilon())};
  return std::make_unique<GroupNormLayer>(input, shape, norm.bias());
}

LayerOr MakeGroupNorm(const v1::Layer& config, const ImageShape& input) {
  const v1::GroupNorm& norm = config.group_norm();
  RETURN_IF_ERROR(CheckEpsilon(norm.epsilon()));
  RETURN_IF_ERROR(CheckRange("groups", norm.groups(), 1, input.channels));
  if (input.channels % norm.groups() != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("groups ", norm.groups(), " must divide the ", input.channels, " channels"));
  }
  const GroupNormShape shape{.batch = 1,
                             .pixels = size_t{input.height} * input.width,
                             .channels = input.channels,
                             .groups = norm.groups(),
                             .epsilon = static_cast<float>(norm.epsilon())};
  return std::make_unique<GroupNormLayer>(input, shape, true);
}

}  // namespace leeway
