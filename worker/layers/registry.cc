#include "worker/layers/registry.h"

#include <google/protobuf/descriptor.h>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace leeway {
namespace {

struct Registration {
  v1::Layer::LayerCase type;
  LayerOr (*make)(const v1::Layer&, const ImageShape&);
};

constexpr Registration kRegistry[] = {
    {v1::Layer::kDense, MakeDense},          //
    {v1::Layer::kConv2D, MakeConv2d},        //
    {v1::Layer::kMaxPool, MakeMaxPool},      //
    {v1::Layer::kAvgPool, MakeAvgPool},      //
    {v1::Layer::kRelu, MakeRelu},            //
    {v1::Layer::kGelu, MakeGelu},            //
    {v1::Layer::kTanh, MakeTanh},            //
    {v1::Layer::kBatchNorm, MakeBatchNorm},  //
    {v1::Layer::kDropout, MakeDropout},      //
    {v1::Layer::kFlatten, MakeFlatten},      //
    {v1::Layer::kRelu6, MakeRelu6},          //
    {v1::Layer::kSilu, MakeSilu},            //
    {v1::Layer::kGlobalAvgPool, MakeGlobalAvgPool},
    {v1::Layer::kPadChannels, MakePadChannels},
    {v1::Layer::kLayerNorm, MakeLayerNorm},
    {v1::Layer::kGroupNorm, MakeGroupNorm},
    {v1::Layer::kEmbedding, MakeEmbedding},
    {v1::Layer::kPositionEmbedding, MakePositionEmbedding},
    {v1::Layer::kAttention, MakeAttention},
    {v1::Layer::kFactorInteraction, MakeFactorInteraction},
};

}  // namespace

LayerOr MakeLayer(const v1::Layer& config, const ImageShape& input) {
  if (config.layer_case() == v1::Layer::LAYER_NOT_SET) {
    return absl::InvalidArgumentError("no layer type is given");
  }
  for (const Registration& entry : kRegistry) {
    if (entry.type == config.layer_case()) return entry.make(config, input);
  }
  const auto* type = v1::Layer::descriptor()->FindFieldByNumber(config.layer_case());
  return absl::UnimplementedError(
      absl::StrCat("layer type ", type->name(), " is not in worker/layers/registry.cc"));
}

}  // namespace leeway
