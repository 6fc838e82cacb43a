// The registry of layers. To add a layer:
//   1. Add a message to the oneof of proto/leeway/v1/job.proto's Layer. Its name there is its
//      `type` in YAML.
//   2. Add one file to this folder with a class and a function like those below. dropout.cc is a
//      short example.
//   3. Add the function's name here, and its line to registry.cc.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "leeway/v1/job.pb.h"
#include "worker/layers/layer.h"

namespace leeway {

using LayerOr = absl::StatusOr<std::unique_ptr<Layer>>;

// Makes the layer that `config` describes, for examples of shape `input`. Returns INVALID_ARGUMENT
// if `config` and `input` do not match. The message says what is wrong, and the caller adds the
// layer's name.
LayerOr MakeLayer(const v1::Layer& config, const ImageShape& input);

// The factories. MakeLayer calls each of them for the type for which it is registered.
LayerOr MakeDense(const v1::Layer& config, const ImageShape& input);
LayerOr MakeConv2d(const v1::Layer& config, const ImageShape& input);
LayerOr MakeMaxPool(const v1::Layer& config, const ImageShape& input);
LayerOr MakeAvgPool(const v1::Layer& config, const ImageShape& input);
LayerOr MakeRelu(const v1::Layer& config, const ImageShape& input);
LayerOr MakeGelu(const v1::Layer& config, const ImageShape& input);
LayerOr MakeTanh(const v1::Layer& config, const ImageShape& input);
LayerOr MakeBatchNorm(const v1::Layer& config, const ImageShape& input);
LayerOr MakeDropout(const v1::Layer& config, const ImageShape& input);
LayerOr MakeRelu6(const v1::Layer& config, const ImageShape& input);
LayerOr MakeSilu(const v1::Layer& config, const ImageShape& input);
LayerOr MakeGlobalAvgPool(const v1::Layer& config, const ImageShape& input);
LayerOr MakePadChannels(const v1::Layer& config, const ImageShape& input);
LayerOr MakeLayerNorm(const v1::Layer& config, const ImageShape& input);
LayerOr MakeGroupNorm(const v1::Layer& config, const ImageShape& input);
LayerOr MakeEmbedding(const v1::Layer& config, const ImageShape& input);
LayerOr MakePositionEmbedding(const v1::Layer& config, const ImageShape& input);
LayerOr MakeAttention(const v1::Layer& config, const ImageShape& input);
LayerOr MakeFactorInteraction(const v1::Layer& config, const ImageShape& input);
LayerOr MakeFlatten(const v1::Layer& config, const ImageShape& input);

}  // namespace leeway
