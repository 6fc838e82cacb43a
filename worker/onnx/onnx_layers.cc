#include "worker/onnx/onnx_layers.h"

#include "absl/strings/str_cat.h"
#include "config/model/layer_tree.h"

namespace leeway {
namespace {

struct KnownLayer {
  v1::Layer::LayerCase kind;
  OnnxValue (*add)(const OnnxLayer&);
};

constexpr KnownLayer kKnown[] = {
    {v1::Layer::kDense, AddDense},
    {v1::Layer::kTiedDense, AddTiedDense},
    {v1::Layer::kEmbedding, AddEmbedding},
    {v1::Layer::kPositionEmbedding, AddPositionEmbedding},
    {v1::Layer::kAttention, AddAttention},
    {v1::Layer::kFactorInteraction, AddFactorInteraction},
    {v1::Layer::kConv2D, AddConv2d},
    {v1::Layer::kMaxPool, AddMaxPool},
    {v1::Layer::kAvgPool, AddAvgPool},
    {v1::Layer::kGlobalAvgPool, AddGlobalAvgPool},
    {v1::Layer::kPadChannels, AddPadChannels},
    {v1::Layer::kFlatten, AddFlatten},
    {v1::Layer::kRelu, AddRelu},
    {v1::Layer::kRelu6, AddRelu6},
    {v1::Layer::kSilu, AddSilu},
    {v1::Layer::kTanh, AddTanh},
    {v1::Layer::kGelu, AddGelu},
    {v1::Layer::kBatchNorm, AddBatchNorm},
    {v1::Layer::kLayerNorm, AddLayerNorm},
    {v1::Layer::kGroupNorm, AddGroupNorm},
    {v1::Layer::kDropout, AddNothing},
};

}  // namespace

absl::StatusOr<OnnxValue> AddOnnxLayer(const OnnxLayer& layer) {
  if (layer.input.tokens() && !layer.config.has_embedding()) {
    return absl::UnimplementedError(
        absl::StrCat("layer '", layer.name,
                     "' reads the tokens of the data; in ONNX only embeddings can read them"));
  }
  for (const KnownLayer& known : kKnown) {
    if (known.kind == layer.config.layer_case()) return known.add(layer);
  }
  return absl::UnimplementedError(absl::StrCat("layer '", layer.name, "' is a ",
                                               LayerType(layer.config),
                                               ", which cannot be written as ONNX"));
}

}  // namespace leeway
