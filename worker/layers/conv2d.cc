#include <memory>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "worker/layers/checks.h"
#include "worker/layers/grouped_conv2d.h"
#include "worker/layers/limits.h"
#include "worker/layers/registry.h"

namespace leeway {
namespace {

// Computes y = x * W + b over square windows, with W [kernel x kernel x channels x filters].
class Conv2dLayer final : public Layer {
 public:
  Conv2dLayer(const v1::Conv2d& config, const Conv2dShape& shape)
      : Layer(shape.input, shape.output()),
        shape_(shape),
        bias_(config.bias()),
        initializer_(config.initializer()) {}

  std::vector<TensorPlan> tensors() const override {
    const uint64_t area = uint64_t{shape_.kernel} * shape_.kernel;
    std::vector<TensorPlan> plans = {
        {.name = "weight",
         .shape = {shape_.kernel, shape_.kernel, shape_.input.channels, shape_.filters},
         .initializer = initializer_,
         .fan_in = area * shape_.input.channels,
         .fan_out = area * shape_.filters}};
    if (bias_)
      plans.push_back({.name = "bias", .shape = {shape_.filters}, .kind = v1::TENSOR_KIND_BIAS});
    return plans;
  }

  size_t scratch(const Backend& backend, size_t batch) const override {
    return backend.Conv2dScratch(shape_, batch);
  }

  double flops() const override {
    return 2.0 * static_cast<double>(shape_.patch()) * static_cast<double>(output().elements());
  }

  void Forward(const Pass& pass, const float* x, float* y) const override {
    pass.backend.Conv2dForward(shape_, pass.batch, x, pass.weights[0],
                               bias_ ? pass.weights[1] : nullptr, pass.scratch, y);
  }

  void Backward(const Pass& pass, const float* x, const float* y, float* dy,
                float* dx) const override {
    pass.backend.Conv2dBackward(shape_, pass.batch, x, pass.weights[0], dy, pass.scratch,
                                pass.contributions[0], bias_ ? pass.contributions[1] : nullptr, dx);
  }

 private:
  const Conv2dShape shape_;
  const bool bias_;
  const v1::Initializer initializer_;
};

}  // namespace

LayerOr MakeConv2d(const v1::Layer& config, const ImageShape& input) {
  const v1::Conv2d& conv = config.conv2d();
  RETURN_IF_ERROR(CheckRange("filters", conv.filters(), 1, 65536));
  RETURN_IF_ERROR(CheckRange("kernel", conv.kernel(), 1, 1024));
  RETURN_IF_ERROR(CheckRange("stride", conv.stride(), 1, 1024));
  RETURN_IF_ERROR(CheckRange("padding", conv.padding(), 0, 1024));
  if (conv.initializer() == v1::INITIALIZER_NORMAL) {
    return absl::InvalidArgumentError("initializer normal is only for dense: use he_normal");
  }
  const uint64_t border = 2 * uint64_t{conv.padding()};
  if (conv.kernel() > input.height + border || conv.kernel() > input.width + border) {
    return absl::InvalidArgumentError(absl::StrCat(
        "kernel ", conv.kernel(), " is larger than the ", input.height, " x ", input.width,
        " input", border == 0 ? "" : absl::StrCat(" with its padding of ", conv.padding())));
  }
  RETURN_IF_ERROR(CheckRange("groups", conv.groups(), 1, input.channels));
  if (input.channels % conv.groups() != 0 || conv.filters() % conv.groups() != 0) {
    return absl::InvalidArgumentError(absl::StrCat("groups ", conv.groups(), " must divide the ",
                                                   input.channels, " channels and the ",
                                                   conv.filters(), " filters"));
  }
  const Conv2dShape shape{input, conv.filters(), conv.kernel(), conv.stride(), conv.padding()};
  // Only the weight's number of elements could overflow, because it is a product of four numbers.
  if (shape.patch() > kMaxModelElements / conv.filters()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a weight of ", conv.kernel(), " x ", conv.kernel(), " x ", input.channels, " x ",
        conv.filters(), " is more than the ", kMaxModelElements, " elements of a model"));
  }
  if (conv.groups() > 1) return MakeGroupedConv2d(conv, shape);
  return std::make_unique<Conv2dLayer>(conv, shape);
}

}  // namespace leeway
