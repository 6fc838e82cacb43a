#include "worker/layers/grouped_conv2d.h"

#include <algorithm>
#include <memory>

namespace leeway {
namespace {

// The common part of the two kinds of layers. W is [kernel x kernel x channels of a group x
// filters], and b is [filters].
class GroupedLayer : public Layer {
 public:
  GroupedLayer(const v1::Conv2d& config, const Conv2dShape& shape)
      : Layer(shape.input, shape.output()),
        shape_(shape),
        groups_(config.groups()),
        bias_(config.bias()),
        initializer_(config.initializer()) {}

  std::vector<TensorPlan> tensors() const override {
    const uint64_t area = uint64_t{shape_.kernel} * shape_.kernel;
    const uint64_t channels = shape_.input.channels / groups_;
    std::vector<TensorPlan> plans = {
        {.name = "weight",
         .shape = {shape_.kernel, shape_.kernel, channels, shape_.filters},
         .initializer = initializer_,
         .fan_in = area * channels,
         .fan_out = area * shape_.filters / groups_}};
    if (bias_)
      plans.push_back({.name = "bias", .shape = {shape_.filters}, .kind = v1::TENSOR_KIND_BIAS});
    return plans;
  }

  double flops() const override {
    return 2.0 * static_cast<double>(shape_.patch() / groups_) *
           static_cast<double>(output().elements());
  }

 protected:
  size_t OutputPixels(size_t batch) const { return batch * output().height * output().width; }

  const Conv2dShape shape_;
  const uint32_t groups_;
  const bool bias_;

 private:
  const v1::Initializer initializer_;
};

// Convolves each channel separately.
class DepthwiseLayer final : public GroupedLayer {
 public:
  using GroupedLayer::GroupedLayer;

  void Forward(const Pass& pass, const float* x, float* y) const override {
    pass.backend.DepthwiseForward(shape_, pass.batch, x, pass.weights[0],
                                  bias_ ? pass.weights[1] : nullptr, y);
  }

  void Backward(const Pass& pass, const float* x, const float* y, float* dy,
                float* dx) const override {
    pass.backend.DepthwiseBackward(shape_, pass.batch, x, pass.weights[0], dy,
                                   pass.contributions[0], dx);
    if (!bias_) return;
    pass.backend.SumRows(OutputPixels(pass.batch), shape_.filters, dy, pass.contributions[1]);
  }
};

// Convolves one group after the other, on copies of the group's channels.
class GroupedConv2dLayer final : public GroupedLayer {
 public:
  GroupedConv2dLayer(const v1::Conv2d& config, const Conv2dShape& shape)
      : GroupedLayer(config, shape), group_(shape) {
    group_.input.channels /= groups_;
    group_.filters /= groups_;
  }

  size_t scratch(const Backend& backend, size_t batch) const override {
    return 2 * batch * (group_.input.elements() + group_.output().elements()) + 2 * Weights() +
           backend.Conv2dScratch(group_, batch);
  }

  void Forward(const Pass& pass, const float* x, float* y) const override {
    for (uint32_t group = 0; group < groups_; ++group) {
      const Copies copies = TakeInputs(pass, group, x);
      pass.backend.Conv2dForward(group_, pass.batch, copies.x, copies.weight, nullptr,
                                 copies.scratch, copies.y);
      pass.backend.CopyColumns(
          {OutputPixels(pass.batch), group_.filters, group_.filters, shape_.filters}, copies.y,
          y + group * group_.filters);
    }
    if (bias_) {
      pass.backend.AddRows(OutputPixels(pass.batch), shape_.filters, pass.weights[1], y);
    }
  }

  void Backward(const Pass& pass, const float* x, const float* y, float* dy,
                float* dx) const override {
    for (uint32_t group = 0; group < groups_; ++group) {
      BackwardGroup(pass, group, x, dy, dx);
    }
    if (!bias_) return;
    pass.backend.SumRows(OutputPixels(pass.batch), shape_.filters, dy, pass.contributions[1]);
  }

 private:
  // The copies of one group's values, in the scratch.
  struct Copies {
    float* x;
    float* y;
    float* dx;
    float* dy;
    float* weight;
    float* dweight;
    float* scratch;
  };

  size_t Weights() const { return group_.patch() * group_.filters; }
  size_t InputPixels(size_t batch) const { return batch * input().height * input().width; }

  Copies TakeInputs(const Pass& pass, uint32_t group, const float* x) const {
    const size_t inputs = pass.batch * group_.input.elements();
    const size_t outputs = pass.batch * group_.output().elements();
    Copies copies{};
    copies.x = pass.scratch;
    copies.dx = copies.x + inputs;
    copies.y = copies.dx + inputs;
    copies.dy = copies.y + outputs;
    copies.weight = copies.dy + outputs;
    copies.dweight = copies.weight + Weights();
    copies.scratch = copies.dweight + Weights();
    pass.backend.CopyColumns(
        {InputPixels(pass.batch), group_.input.channels, input().channels, group_.input.channels},
        x + group * group_.input.channels, copies.x);
    pass.backend.CopyColumns({group_.patch(), group_.filters, shape_.filters, group_.filters},
                             pass.weights[0] + group * group_.filters, copies.weight);
    return copies;
  }

  void BackwardGroup(const Pass& pass, uint32_t group, const float* x, const float* dy,
                     float* dx) const {
    const Copies copies = TakeInputs(pass, group, x);
    pass.backend.CopyColumns(
        {OutputPixels(pass.batch), group_.filters, shape_.filters, group_.filters},
        dy + group * group_.filters, copies.dy);
    pass.backend.Conv2dBackward(group_, pass.batch, copies.x, copies.weight, copies.dy,
                                copies.scratch, copies.dweight, nullptr,
                                dx == nullptr ? nullptr : copies.dx);
    pass.backend.CopyColumns({group_.patch(), group_.filters, group_.filters, shape_.filters},
                             copies.dweight, pass.contributions[0] + group * group_.filters);
    if (dx == nullptr) return;
    pass.backend.CopyColumns(
        {InputPixels(pass.batch), group_.input.channels, group_.input.channels, input().channels},
        copies.dx, dx + group * group_.input.channels);
  }

  Conv2dShape group_;
};

}  // namespace

LayerOr MakeGroupedConv2d(const v1::Conv2d& config, const Conv2dShape& shape) {
  const bool depthwise =
      config.groups() == shape.input.channels && shape.filters == shape.input.channels;
  if (depthwise) return std::make_unique<DepthwiseLayer>(config, shape);
  return std::make_unique<GroupedConv2dLayer>(config, shape);
}

}  // namespace leeway
