#include "worker/formats/file_tensors.h"

#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/job_key.h"
#include "common/status.h"
#include "config/model/layer_tree.h"
#include "worker/formats/feature_order.h"
#include "worker/formats/torch_names.h"

namespace leeway {
namespace {

enum class Layout { kAsIs, kConvolution, kLinear, kLinearInputsFirst, kFeatures };

// The tensors whose layout differs between Leeway and PyTorch.
struct KnownLayout {
  v1::Layer::LayerCase layer;
  // The name of the tensor. Empty for all tensors of the layer.
  absl::string_view tensor;
  Layout layout;
};
constexpr KnownLayout kLayouts[] = {
    {v1::Layer::kConv2D, "weight", Layout::kConvolution},
    {v1::Layer::kDense, "weight", Layout::kLinear},
    {v1::Layer::kBatchNorm, "", Layout::kFeatures},
    {v1::Layer::kLayerNorm, "", Layout::kFeatures},
};

Layout LayoutOf(v1::Layer::LayerCase layer, absl::string_view tensor, absl::string_view name) {
  for (const KnownLayout& known : kLayouts) {
    if (known.layer != layer || (!known.tensor.empty() && known.tensor != tensor)) continue;
    const bool inputs_first = known.layout == Layout::kLinear && KeepsInputsFirst(name);
    return inputs_first ? Layout::kLinearInputsFirst : known.layout;
  }
  return Layout::kAsIs;
}

// Sets the axes and the shape of `tensor`. `image` is the image to which the layer's input features
// belong.
void SetLayout(Layout layout, const std::vector<uint64_t>& shape, const ImageShape& image,
               FileTensor& tensor) {
  tensor.shape = shape;
  // A pointwise dense layer reads only the channels of an image.
  const bool reads_image = image.elements() == shape[0];
  switch (layout) {
    case Layout::kConvolution:
      tensor.axes = {.sides = shape, .order = {3, 2, 0, 1}};
      tensor.shape = tensor.axes.file_sides();
      return;
    case Layout::kLinear:
      tensor.shape = {shape[1], shape[0]};
      tensor.axes =
          reads_image ? LinearAxes(image, shape[1]) : AxisOrder{.sides = shape, .order = {1, 0}};
      return;
    case Layout::kLinearInputsFirst:
      tensor.axes = reads_image ? LinearAxesInputsFirst(image, shape[1]) : AxisOrder::AsIs(shape);
      return;
    case Layout::kFeatures:
      tensor.axes = reads_image ? FeatureAxes(image) : AxisOrder::AsIs(shape);
      return;
    case Layout::kAsIs:
      tensor.axes = AxisOrder::AsIs(shape);
      return;
  }
}

absl::Status CheckNames(const std::vector<FileTensor>& tensors) {
  std::map<absl::string_view, absl::string_view> taken;
  for (const FileTensor& tensor : tensors) {
    const auto [at, fresh] = taken.emplace(tensor.names.front(), tensor.layer);
    if (fresh) continue;
    return AtKey(
        absl::InvalidArgumentError(absl::StrCat(
            "the layers '", at->second, "' and '", tensor.layer, "' would both have a tensor '",
            tensor.names.front(), "' in PyTorch: rename one of the layers")),
        "model.layers");
  }
  return absl::OkStatus();
}

std::map<std::string, uint64_t> OffsetsOf(const v1::ModelSchema& schema) {
  std::map<std::string, uint64_t> offsets;
  for (const v1::TensorSpec& tensor : schema.tensors()) {
    offsets[tensor.name()] = tensor.offset();
  }
  return offsets;
}

}  // namespace

std::vector<FileTensor> LeewayTensors(const Model& model) {
  const Graph& graph = model.graph();
  std::vector<FileTensor> tensors;
  for (const v1::TensorSpec& spec : model.schema().tensors()) {
    const std::vector<uint64_t> shape(spec.shape().begin(), spec.shape().end());
    FileTensor& tensor = tensors.emplace_back();
    const size_t slash = spec.name().rfind('/');
    tensor.layer = spec.name().substr(0, slash);
    tensor.tensor = spec.name().substr(slash + 1);
    tensor.names = {spec.name()};
    tensor.shape = shape;
    tensor.offset = spec.offset();
    tensor.axes = AxisOrder::AsIs(shape);
    const bool last = tensor.layer == graph.nodes.back().name;
    if (last && shape.back() == graph.values.back().shape.channels) {
      tensor.scores_axis = shape.size() - 1;
    }
  }
  return tensors;
}

absl::StatusOr<std::vector<FileTensor>> TorchTensors(const v1::Model& config, const Model& model) {
  const Graph& graph = model.graph();
  ASSIGN_OR_RETURN(const std::vector<ImageShape> images, FeatureImages(config, graph));
  const std::vector<PlacedLayer> layers = FlattenLayers(config);
  const std::map<std::string, uint64_t> offsets = OffsetsOf(model.schema());
  std::vector<FileTensor> tensors;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    if (node.layer == nullptr) continue;
    const v1::Layer::LayerCase kind = layers[i].layer->layer_case();
    for (const TensorPlan& plan : node.layer->tensors()) {
      FileTensor& tensor = tensors.emplace_back();
      tensor.layer = node.name;
      tensor.tensor = plan.name;
      tensor.names = TorchNames(node.name, plan.name);
      tensor.offset = offsets.at(absl::StrCat(node.name, "/", plan.name));
      const Layout layout = LayoutOf(kind, plan.name, node.name);
      SetLayout(layout, plan.shape, images[node.inputs[0]], tensor);
      if (i + 1 == graph.nodes.size() && kind == v1::Layer::kDense) {
        tensor.scores_axis = layout == Layout::kLinearInputsFirst ? 1 : 0;
      }
    }
  }
  RETURN_IF_ERROR(CheckNames(tensors));
  return tensors;
}

}  // namespace leeway
