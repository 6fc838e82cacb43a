#include "worker/compute/onednn/convolution_slice.h"

#include <algorithm>
#include <string_view>

namespace leeway {
namespace {

using dnnl::memory;
using Tag = memory::format_tag;

constexpr auto kFloat = memory::data_type::f32;
constexpr auto kDirect = dnnl::algorithm::convolution_direct;

// Returns true if the kernel is a batched matrix product, which is oneDNN's first choice on
// processors with AVX-512. For groups with few channels, oneDNN's other kernels take half of the
// time.
bool HasBatchedProducts(const dnnl::primitive_desc_base& description) {
  return std::string_view(description.impl_info_str()).starts_with("br");
}
constexpr uint32_t kFewChannels = 15;

dnnl::reorder::primitive_desc Reorder(const dnnl::engine& engine, const memory::desc& from,
                                      const memory::desc& to) {
  return {engine, from, engine, to};
}

size_t Floats(size_t bytes) {
  constexpr size_t kLine = 64;
  return (bytes + kLine - 1) / kLine * kLine / sizeof(float);
}

}  // namespace

// The descriptions of a convolution's three products for oneDNN.
struct ConvolutionSlice::Description {
  Description(const GroupedShape& shape, size_t batch) {
    const ImageShape& in = shape.conv.input;
    const memory::dim kernel = shape.conv.kernel;
    const memory::dim step = shape.conv.stride;
    const memory::dim border = shape.conv.padding;
    filters = shape.conv.filters;
    has_few_channels = in.channels / shape.groups <= kFewChannels;
    const ImageShape out = shape.conv.output();
    const memory::dim groups = shape.groups;
    const auto examples = static_cast<memory::dim>(batch);
    x = {{examples, in.channels, in.height, in.width}, kFloat, Tag::nhwc};
    y = {{examples, filters, out.height, out.width}, kFloat, Tag::nhwc};
    bias = {{filters}, kFloat, Tag::x};
    const memory::dims flat = {filters, in.channels, kernel, kernel};
    const memory::dims grouped = {groups, filters / groups, in.channels / groups, kernel, kernel};
    const bool is_flat = groups == 1;
    plain_weight = {is_flat ? flat : grouped, kFloat, is_flat ? Tag::hwio : Tag::hwigo};
    any_weight = {is_flat ? flat : grouped, kFloat, Tag::any};
    stride = {step, step};
    padding = {border, border};
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  }

  dnnl::convolution_forward::primitive_desc Forward(const dnnl::engine& engine) const {
    const dnnl::convolution_forward::desc what(dnnl::prop_kind::forward_training, kDirect, x,
                                               any_weight, bias, y, stride, padding, padding);
    const dnnl::convolution_forward::primitive_desc first(what, attributes, engine);
    if (!has_few_channels || !HasBatchedProducts(first)) return first;
    auto other = first;
    while (other.next_impl()) {
      if (!HasBatchedProducts(other)) return other;
    }
    return first;
  }
  dnnl::convolution_backward_data::primitive_desc Data(const dnnl::engine& engine) const {
    return {
        {kDirect, x, any_weight, y, stride, padding, padding}, attributes, engine, Forward(engine)};
  }
  // Describes the gradient of the weights. Leaves out the gradient of the bias, because oneDNN sums
  // that gradient in a plain loop. In a model's first layer this loop would take half of the time.
  dnnl::convolution_backward_weights::primitive_desc Weights(const dnnl::engine& engine) const {
    return {
        {kDirect, x, any_weight, y, stride, padding, padding}, attributes, engine, Forward(engine)};
  }

  memory::dim filters;
  bool has_few_channels;
  memory::desc x;
  memory::desc y;
  memory::desc bias;
  // The weights' layout in the caller's memory, and the layout that oneDNN prefers.
  memory::desc plain_weight;
  memory::desc any_weight;
  memory::dims stride;
  memory::dims padding;
  dnnl::primitive_attr attributes;
};

ConvolutionSlice::ConvolutionSlice(const Description& description)
    : filters_(static_cast<size_t>(description.filters)),
      engine_(dnnl::engine::kind::cpu, 0),
      stream_(engine_),
      forward_(description.Forward(engine_)),
      data_(description.Data(engine_)),
      weights_(description.Weights(engine_)),
      forward_reorder_(
          Reorder(engine_, description.plain_weight, forward_.layout(DNNL_ARG_WEIGHTS))),
      data_reorder_(Reorder(engine_, description.plain_weight, data_.layout(DNNL_ARG_WEIGHTS))),
      weights_reorder_(
          Reorder(engine_, weights_.layout(DNNL_ARG_DIFF_WEIGHTS), description.plain_weight)) {
  PlanScratch();
}

std::unique_ptr<ConvolutionSlice> ConvolutionSlice::Make(const GroupedShape& shape, size_t batch) {
  try {
    std::unique_ptr<ConvolutionSlice> slice(new ConvolutionSlice(Description(shape, batch)));
    if (!slice->is_fast()) slice.reset();
    return slice;
  } catch (const dnnl::error&) {
    return nullptr;
  }
}

void ConvolutionSlice::PlanScratch() {
  bias_ = Floats(std::max({forward_.layout(DNNL_ARG_WEIGHTS).get_size(),
                           data_.layout(DNNL_ARG_WEIGHTS).get_size(),
                           weights_.layout(DNNL_ARG_DIFF_WEIGHTS).get_size()}));
  scratchpad_ = bias_ + Floats(filters_ * sizeof(float));
  scratchpad_floats_ = Floats(std::max(
      {forward_.scratchpad_bytes(), data_.scratchpad_bytes(), weights_.scratchpad_bytes()}));
}

bool ConvolutionSlice::is_fast() const {
  return forward_.is_fast() && data_.is_fast() && weights_.is_fast();
}

void ConvolutionSlice::Forward(const float* x, const float* weight, const float* bias,
                               float* scratch, float* y) {
  forward_reorder_.Point(DNNL_ARG_FROM, weight);
  forward_reorder_.Point(DNNL_ARG_TO, scratch);
  forward_reorder_.Run(stream_);
  if (bias == nullptr) {
    std::fill_n(scratch + bias_, filters_, 0.0f);
    bias = scratch + bias_;
  }
  forward_.Point(DNNL_ARG_SRC, x);
  forward_.Point(DNNL_ARG_WEIGHTS, scratch);
  forward_.Point(DNNL_ARG_BIAS, bias);
  forward_.Point(DNNL_ARG_DST, y);
  forward_.Point(DNNL_ARG_SCRATCHPAD, scratch + scratchpad_);
  forward_.Run(stream_);
}

void ConvolutionSlice::BackwardWeights(const float* x, const float* dy, float* scratch,
                                       float* dweight) {
  weights_.Point(DNNL_ARG_SRC, x);
  weights_.Point(DNNL_ARG_DIFF_DST, dy);
  weights_.Point(DNNL_ARG_DIFF_WEIGHTS, scratch);
  weights_.Point(DNNL_ARG_SCRATCHPAD, scratch + scratchpad_);
  weights_.Run(stream_);
  weights_reorder_.Point(DNNL_ARG_FROM, scratch);
  weights_reorder_.Point(DNNL_ARG_TO, dweight);
  weights_reorder_.Run(stream_);
}

void ConvolutionSlice::BackwardData(const float* weight, const float* dy, float* scratch,
                                    float* dx) {
  data_reorder_.Point(DNNL_ARG_FROM, weight);
  data_reorder_.Point(DNNL_ARG_TO, scratch);
  data_reorder_.Run(stream_);
  data_.Point(DNNL_ARG_DIFF_DST, dy);
  data_.Point(DNNL_ARG_WEIGHTS, scratch);
  data_.Point(DNNL_ARG_DIFF_SRC, dx);
  data_.Point(DNNL_ARG_SCRATCHPAD, scratch + scratchpad_);
  data_.Run(stream_);
}

void ConvolutionSlice::Backward(const float* x, const float* weight, const float* dy,
                                float* scratch, float* dweight, float* dx) {
  BackwardWeights(x, dy, scratch, dweight);
  if (dx != nullptr) BackwardData(weight, dy, scratch, dx);
}

}  // namespace leeway
