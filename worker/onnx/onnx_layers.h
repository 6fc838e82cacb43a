// The ONNX nodes of layers. onnx_layers.cc has the table of the supported kinds.
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

// A layer that is to be added to the graph.
struct OnnxLayer {
  const v1::Layer& config;
  const Layer& layer;
  // The layer's full name. Everything that the layer adds to the graph has this name, or a name
  // that begins with it.
  const std::string& name;
  OnnxValue input;
  GraphWriter& graph;
  // Adds the layer's tensor of this name, in PyTorch's form and with the given dimensions. If
  // `dims` is empty, the tensor keeps its own dimensions. Adds each tensor only once. Returns the
  // tensor's name in the graph, or "" if the layer has no such tensor. A tied layer uses the
  // tensors of the layer to which it is tied.
  std::function<std::string(const std::string& tensor, const std::vector<int64_t>& dims)> weight;
  std::string Part(const char* part) const { return name + "." + part; }
  // Returns the layer's output as rows. `value` is the output's name.
  OnnxValue Rows(std::string value) const {
    return {std::move(value), layer.output(), OnnxLayout::kRows};
  }
};

// Adds x W + b, for rows `x` and a weight [inputs, units]. If `bias` is empty, adds no b.
std::string AddProjection(const OnnxLayer& layer, const std::string& name, const std::string& x,
                          const std::string& weight, const std::string& bias);

// Adds the layer as it is in evaluation, and returns its output. Returns UNIMPLEMENTED if this
// exporter has no ONNX nodes for the layer.
absl::StatusOr<OnnxValue> AddOnnxLayer(const OnnxLayer& layer);

// AddOnnxLayer calls these functions, one for each kind of layer.
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
// Adds a pointwise dense layer whose input is rows.
OnnxValue AddDenseOfRows(const OnnxLayer& layer);
// Adds a layer that does nothing in evaluation.
OnnxValue AddNothing(const OnnxLayer& layer);

}  // namespace leeway
