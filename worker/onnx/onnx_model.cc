#include "worker/onnx/onnx_model.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/job_key.h"
#include "common/protocol.h"
#include "common/status.h"
#include "config/model/layer_tree.h"
#include "worker/formats/file_tensors.h"
#include "worker/onnx/graph_writer.h"
#include "worker/onnx/onnx_layers.h"

namespace leeway {
namespace {

constexpr int64_t kIrVersion = 7;
// Newer ones have bounds and paddings as inputs instead of attributes, which OpenCV 4.6 does not
// read.
constexpr int64_t kOpset = 10;
// A message's limit is 2 GiB; this leaves room for all but the weights.
constexpr uint64_t kWeightBytesMax = 2'000'000'000;

class OnnxBuilder {
 public:
  OnnxBuilder(const v1::Model& config, const Model& model, std::span<const float> weights,
              std::vector<FileTensor> tensors, onnx::GraphProto& graph)
      : layers_(FlattenLayers(config)),
        model_(model),
        weights_(weights),
        tensors_(std::move(tensors)),
        writer_(graph) {}

  absl::Status Build() {
    const Graph& nodes = model_.graph();
    values_.push_back(writer_.Begin(nodes.values.front().shape));
    for (size_t i = 0; i < nodes.nodes.size(); ++i) {
      const Node& node = nodes.nodes[i];
      auto value = node.kind == Node::Kind::kLayer ? AddLayer(i) : AddJoin(node, i);
      if (!value.ok()) return AtKey(value.status(), node.key);
      values_.push_back(*std::move(value));
    }
    writer_.End(values_.back());
    return absl::OkStatus();
  }

 private:
  absl::StatusOr<OnnxValue> AddLayer(size_t i) {
    const Node& node = model_.graph().nodes[i];
    const auto weight = [&](const std::string& tensor, const std::vector<int64_t>& dims) {
      return AddWeight(node, tensor, dims);
    };
    return AddOnnxLayer({.config = *layers_[i].layer,
                         .layer = *node.layer,
                         .name = node.name,
                         .input = values_[node.inputs[0]],
                         .graph = writer_,
                         .weight = weight});
  }

  std::string AddWeight(const Node& node, const std::string& tensor,
                        const std::vector<int64_t>& dims) {
    const auto at = std::find_if(tensors_.begin(), tensors_.end(), [&](const FileTensor& each) {
      return each.layer == node.name && each.tensor == tensor;
    });
    if (at == tensors_.end()) return "";
    const uint64_t elements = at->axes.elements();
    std::vector<float> values(elements);
    ToFile(at->axes, weights_.subspan(at->offset, elements), values);
    const std::vector<int64_t> own(at->shape.begin(), at->shape.end());
    return writer_.AddFloats(at->names.front(), dims.empty() ? own : dims, values);
  }

  // Images if one of them is: a flat one is then an image of one pixel.
  absl::StatusOr<OnnxValue> AddJoin(const Node& node, size_t i) {
    const bool images = std::any_of(node.inputs.begin(), node.inputs.end(),
                                    [&](size_t value) { return values_[value].image; });
    std::vector<std::string> inputs;
    for (size_t k = 0; k < node.inputs.size(); ++k) {
      const OnnxValue& value = values_[node.inputs[k]];
      const std::string name = absl::StrCat(node.name, ".input_", k);
      inputs.push_back((images ? writer_.Image(name, value) : value).name);
    }
    const ImageShape& shape = model_.graph().output(i).shape;
    if (node.kind == Node::Kind::kAdd)
      return OnnxValue{writer_.Add(node.name, "Add", inputs), shape, images};
    return OnnxValue{writer_.Add(node.name, "Concat", inputs, {IntAttribute("axis", 1)}), shape,
                     images};
  }

  const std::vector<PlacedLayer> layers_;
  const Model& model_;
  const std::span<const float> weights_;
  const std::vector<FileTensor> tensors_;
  GraphWriter writer_;
  // As the model's graph counts them.
  std::vector<OnnxValue> values_;
};

}  // namespace

absl::StatusOr<onnx::ModelProto> MakeOnnxModel(const v1::Model& config, const Model& model,
                                               std::span<const float> weights,
                                               const std::map<std::string, std::string>& metadata) {
  if (weights.size_bytes() > kWeightBytesMax) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the model has ", weights.size_bytes(),
                     " bytes of weights, and an ONNX file holds at most ", kWeightBytesMax,
                     ": write it as pytorch or safetensors"));
  }
  ASSIGN_OR_RETURN(std::vector<FileTensor> tensors, TorchTensors(config, model));
  onnx::ModelProto document;
  document.set_ir_version(kIrVersion);
  document.set_producer_name("leeway");
  document.set_producer_version(kVersion);
  document.add_opset_import()->set_version(kOpset);
  for (const auto& [key, value] : metadata) {
    onnx::StringStringEntryProto& entry = *document.add_metadata_props();
    entry.set_key(key);
    entry.set_value(value);
  }
  onnx::GraphProto& graph = *document.mutable_graph();
  graph.set_name("leeway");
  RETURN_IF_ERROR(OnnxBuilder(config, model, weights, std::move(tensors), graph).Build());
  return document;
}

}  // namespace leeway
