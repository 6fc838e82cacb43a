#include "worker/formats/feature_order.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/job_key.h"
#include "config/model/layer_tree.h"

namespace leeway {
namespace {

// Layers for which the order of features does not matter, because they treat each feature
// separately or all features alike.
constexpr v1::Layer::LayerCase kKeepOrder[] = {
    v1::Layer::kFlatten, v1::Layer::kRelu,         v1::Layer::kRelu6,     v1::Layer::kGelu,
    v1::Layer::kSilu,    v1::Layer::kTanh,         v1::Layer::kBatchNorm, v1::Layer::kLayerNorm,
    v1::Layer::kDropout, v1::Layer::kGlobalAvgPool};

absl::Status Mixed(const Node& node) {
  return AtKey(
      absl::UnimplementedError(absl::StrCat(
          "layer '", node.name,
          "' reads the features of a flattened image in Leeway's order, "
          "which differs from the order of PyTorch and ONNX; only dense, batch_norm, layer_norm, "
          "dropout or an activation may follow a flatten in these formats")),
      node.key);
}

bool IsFlattened(const ImageShape& shape, const ImageShape& image) {
  return shape.flat() && !image.flat();
}

// Returns the image to which the features of node `i`'s output belong. `images` has the images of
// all earlier values.
absl::StatusOr<ImageShape> ImageOfOutput(const Graph& graph, size_t i, const PlacedLayer& placed,
                                         const std::vector<ImageShape>& images) {
  const Node& node = graph.nodes[i];
  const ImageShape& output = graph.output(i).shape;
  const ImageShape& first = images[node.inputs[0]];
  const v1::Layer::LayerCase kind = placed.layer->layer_case();
  const bool flattened = std::any_of(node.inputs.begin(), node.inputs.end(), [&](size_t value) {
    return IsFlattened(graph.values[value].shape, images[value]);
  });
  if (!flattened) return kind == v1::Layer::kFlatten ? first : output;
  if (node.kind == Node::Kind::kAdd && first == images[node.inputs[1]]) return first;
  if (node.kind != Node::Kind::kLayer) return Mixed(node);
  // A dense layer can read these features, because its weights can be reordered.
  if (kind == v1::Layer::kDense) return output;
  const bool keeps =
      std::find(std::begin(kKeepOrder), std::end(kKeepOrder), kind) != std::end(kKeepOrder);
  if (keeps) return first;
  return Mixed(node);
}

}  // namespace

absl::StatusOr<std::vector<ImageShape>> FeatureImages(const v1::Model& config, const Graph& graph) {
  const std::vector<PlacedLayer> layers = FlattenLayers(config);
  if (layers.size() != graph.nodes.size()) {
    return absl::InternalError(absl::StrCat("the model has ", layers.size(), " layers and ",
                                            graph.nodes.size(), " nodes"));
  }
  std::vector<ImageShape> images = {graph.values.front().shape};
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const auto image = ImageOfOutput(graph, i, layers[i], images);
    if (!image.ok()) return image.status();
    images.push_back(*image);
  }
  return images;
}

AxisOrder FeatureAxes(const ImageShape& image) {
  if (image.flat()) return AxisOrder::AsIs({image.channels});
  return {.sides = {image.height, image.width, image.channels}, .order = {2, 0, 1}};
}

AxisOrder LinearAxes(const ImageShape& image, uint64_t units) {
  return {.sides = {image.height, image.width, image.channels, units}, .order = {3, 2, 0, 1}};
}

AxisOrder LinearAxesInputsFirst(const ImageShape& image, uint64_t units) {
  return {.sides = {image.height, image.width, image.channels, units}, .order = {2, 0, 1, 3}};
}

}  // namespace leeway
