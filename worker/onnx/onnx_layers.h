// Which ONNX nodes a layer is; onnx_layers.cc has the table of the kinds that are known.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "leeway/v1/job.pb.h"
#include "worker/layers/layer.h"
#include "worker/onnx/graph_writer.h"

namespace leeway {

// A layer on its way into the graph.
struct OnnxLayer {
  const v1::Layer& config;
  const Layer& layer;
  // Whole; what the layer adds to the graph is called so, or begins so.
  const std::string& name;
  OnnxValue input;
  GraphWriter& graph;
  // Adds the layer's tensor of this name as PyTorch has it, in the given dimensions or its own,
  // once; its name in the graph, or "" if the layer has no such tensor. A tied layer has those of
  // the layer that it is tied to.
  std::function<std::string(const std::string& tensor, const std::vector<int64_t>& dims)> weight;
  // A name for a part of it.
  std::string Part(const char* part) const { return name + "." + part; }
  // The layer's output, called `value`, in rows.
  OnnxValue Rows(std::string value) const {
    return {std::move(value), layer.output(), OnnxLayout::kRows};
  }
};

// Adds x W + b, for rows `x` and a weight [inputs, units]; an empty `bias` is none.
std::string AddProjection(const OnnxLayer& layer, const std::string& name, const std::string& x,
                          const std::string& weight, const std::string& bias);

// The layer's output, as it is evaluated. UNIMPLEMENTED if ONNX has no such layer here.
absl::StatusOr<OnnxValue> AddOnnxLayer(const OnnxLayer& layer);

// The kinds, called by AddOnnxLayer.
OnnxValue AddConv2d(const OnnxLayer& layer);
OnnxValue AddDense(const OnnxLayer& layer);
OnnxValue AddTiedDense(const OnnxLayer& layer);
OnnxValue AddEmbedding(const OnnxLayer& layer);
OnnxValue AddPositionEmbedding(const OnnxLayer& layer);
OnnxValue AddAttention(const OnnxLayer& layer);
OnnxValue AddFactorInteraction(const OnnxLayer& layer);
OnnxValue AddMaxPool(const OnnxLayer& layer);
OnnxValue AddAvgPool(const OnnxLayer& layer);
OnnxValue AddGlobalAvgPool(const OnnxLayer& layer);
OnnxValue AddPadChannels(const OnnxLayer& layer);
OnnxValue AddFlatten(const OnnxLayer& layer);
OnnxValue AddRelu(const OnnxLayer& layer);
OnnxValue AddRelu6(const OnnxLayer& layer);
OnnxValue AddSilu(const OnnxLayer& layer);
OnnxValue AddTanh(const OnnxLayer& layer);
OnnxValue AddGelu(const OnnxLayer& layer);
OnnxValue AddBatchNorm(const OnnxLayer& layer);
OnnxValue AddLayerNorm(const OnnxLayer& layer);
OnnxValue AddGroupNorm(const OnnxLayer& layer);
// A pointwise one, of rows.
OnnxValue AddDenseOfRows(const OnnxLayer& layer);
// What does nothing when a model is evaluated.
OnnxValue AddNothing(const OnnxLayer& layer);

}  // namespace leeway
