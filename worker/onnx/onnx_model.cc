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
// The opset of the file. Newer opsets have bounds and paddings as inputs and not as attributes, and
// OpenCV 4.6 does not read them.
constexpr int64_t kOpset = 10;
// The largest number of bytes of weights. A protobuf message has at most 2 GiB, and this limit
// leaves room for the rest of the model.
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
    values_.push_back(writer_.Begin(nodes.values.front().shape, TakesTokens()));
    for (size_t i = 0; i < nodes.nodes.size(); ++i) {
      const Node& node = nodes.nodes[i];
      auto value = node.kind == Node::Kind::kLayer ? AddLayer(i) : AddJoin(node, i);
      if (!value.ok()) return AtKey(value.status(), node.key);
      values_.push_back(*std::move(value));
    }
    writer_.End(Scores());
    return absl::OkStatus();
  }

 private:
  // For a text, returns the scores of each position, even if there is only one position. Otherwise
  // returns the scores of each example, if the example has one row of scores.
  OnnxValue Scores() {
    const OnnxValue& scores = values_.back();
    if (TakesTokens()) return writer_.Rows("scores.rows", scores);
    return scores.shape.flat() ? writer_.Flat("scores.flat", scores) : scores;
  }

  bool TakesTokens() const {
    const auto& nodes = model_.graph().nodes;
    return std::any_of(nodes.begin(), nodes.end(), [](const Node& node) {
      return node.layer != nullptr && node.layer->tokens() > 0;
    });
  }

  absl::StatusOr<OnnxValue> AddLayer(size_t i) {
    const Node& node = model_.graph().nodes[i];
    const Node& owner = node.tied_to ? model_.graph().nodes[*node.tied_to] : node;
    const auto weight = [&](const std::string& tensor, const std::vector<int64_t>& dims) {
      return AddWeight(owner, tensor, dims);
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
    return writer_.Shared(at->names.front(), [&] { return AddTensor(*at, dims); });
  }

  std::string AddTensor(const FileTensor& tensor, const std::vector<int64_t>& dims) {
    const uint64_t elements = tensor.axes.elements();
    std::vector<float> values(elements);
    ToFile(tensor.axes, weights_.subspan(tensor.offset, elements), values);
    const std::vector<int64_t> own(tensor.shape.begin(), tensor.shape.end());
    return writer_.AddFloats(tensor.names.front(), dims.empty() ? own : dims, values);
  }

  // Joins the inputs in one layout: rows if any input is rows, otherwise images if any input is an
  // image.
  absl::StatusOr<OnnxValue> AddJoin(const Node& node, size_t i) {
    OnnxLayout layout = OnnxLayout::kFlat;
    for (const size_t input : node.inputs) {
      if (values_[input].tokens()) {
        return absl::UnimplementedError(
            absl::StrCat("'", node.name,
                         "' reads the tokens of the data; in ONNX only embeddings can read them"));
      }
      if (layout != OnnxLayout::kRows && !values_[input].flat()) layout = values_[input].layout;
    }
    std::vector<std::string> inputs;
    for (size_t k = 0; k < node.inputs.size(); ++k) {
      const OnnxValue& value = values_[node.inputs[k]];
      inputs.push_back(Laid(layout, absl::StrCat(node.name, ".input_", k), value).name);
    }
    const ImageShape& shape = model_.graph().output(i).shape;
    if (node.kind == Node::Kind::kAdd) {
      return OnnxValue{writer_.Add(node.name, "Add", inputs), shape, layout};
    }
    const int64_t channels = layout == OnnxLayout::kRows ? 2 : 1;
    return OnnxValue{writer_.Add(node.name, "Concat", inputs, {IntAttribute("axis", channels)}),
                     shape, layout};
  }

  OnnxValue Laid(OnnxLayout layout, const std::string& name, const OnnxValue& value) {
    switch (layout) {
      case OnnxLayout::kRows:
        return writer_.Rows(name, value);
      case OnnxLayout::kImage:
        return writer_.Image(name, value);
      default:
        return value;
    }
  }

  const std::vector<PlacedLayer> layers_;
  const Model& model_;
  const std::span<const float> weights_;
  const std::vector<FileTensor> tensors_;
  GraphWriter writer_;
  // The values that are added, in the order of the model's graph.
  std::vector<OnnxValue> values_;
};

}  // namespace

absl::StatusOr<onnx::ModelProto> MakeOnnxModel(const v1::Model& config, const Model& model,
                                               std::span<const float> weights,
                                               const std::map<std::string, std::string>& metadata) {
  if (weights.size_bytes() > kWeightBytesMax) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the model has ", weights.size_bytes(),
                     " bytes of weights, but an ONNX file can have at most ", kWeightBytesMax,
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
