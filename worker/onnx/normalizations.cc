#include "worker/onnx/onnx_layers.h"

namespace leeway {
namespace {

// Normalises `x` [N, parts, elements]: (x - mean) / sqrt(variance + epsilon) over the elements of
// each part.
std::string Normalized(const OnnxLayer& layer, const std::string& x, size_t parts, double epsilon) {
  GraphWriter& graph = layer.graph;
  const auto count = static_cast<int64_t>(parts);
  const std::vector<float> ones(parts, 1.0f), zeros(parts, 0.0f);
  const std::string scale = graph.AddFloats(layer.Part("ones"), {count}, ones);
  const std::string shift = graph.AddFloats(layer.Part("zeros"), {count}, zeros);
  return graph.Add(layer.Part("normalized"), "InstanceNormalization", {x, scale, shift},
                   {FloatAttribute("epsilon", static_cast<float>(epsilon))});
}

// Returns the layer's input with the channels before the pixels.
OnnxValue ChannelsFirst(const OnnxLayer& layer) {
  return layer.input.rows() ? layer.graph.Image(layer.Part("input"), layer.input) : layer.input;
}

// Reshapes `x` to the dimensions of `like`, multiplies each channel by the layer's weight, and adds
// the layer's bias if it has one.
OnnxValue Scaled(const OnnxLayer& layer, const OnnxValue& like, const std::string& x) {
  const int64_t channels = like.shape.channels;
  std::vector<int64_t> dims = {0, channels}, each = {channels};
  if (like.image()) {
    dims.insert(dims.end(), {like.shape.height, like.shape.width});
    each.insert(each.end(), {1, 1});
  }
  const std::string shaped = layer.graph.Reshape(layer.Part("channels"), x, dims);
  const std::string bias = layer.weight("bias", each);
  const std::string product = layer.graph.Add(bias.empty() ? layer.name : layer.Part("scaled"),
                                              "Mul", {shaped, layer.weight("weight", each)});
  const std::string y =
      bias.empty() ? product : layer.graph.Add(layer.name, "Add", {product, bias});
  return {y, like.shape, like.layout};
}

// Adds layer normalisation as sums over the channels. Other exporters do the same, and programs
// that run ONNX recognise this pattern.
OnnxValue AddLayerNormOfRows(const OnnxLayer& layer) {
  GraphWriter& graph = layer.graph;
  const std::string& x = layer.input.name;
  const std::vector<onnx::AttributeProto> over_channels = {IntsAttribute("axes", {2}),
                                                           IntAttribute("keepdims", 1)};
  const std::string mean = graph.Add(layer.Part("mean"), "ReduceMean", {x}, over_channels);
  const std::string apart = graph.Add(layer.Part("apart"), "Sub", {x, mean});
  const std::string squares =
      graph.Add(layer.Part("squares"), "Pow", {apart, graph.AddFloat(layer.Part("two"), 2)});
  const std::string variance =
      graph.Add(layer.Part("variance"), "ReduceMean", {squares}, over_channels);
  const std::string epsilon = graph.AddFloat(
      layer.Part("epsilon"), static_cast<float>(layer.config.layer_norm().epsilon()));
  const std::string above = graph.Add(layer.Part("above_zero"), "Add", {variance, epsilon});
  const std::string deviation = graph.Add(layer.Part("deviation"), "Sqrt", {above});
  const std::string normalized = graph.Add(layer.Part("normalized"), "Div", {apart, deviation});
  const std::string bias = layer.weight("bias", {});
  const std::string scaled = graph.Add(bias.empty() ? layer.name : layer.Part("scaled"), "Mul",
                                       {normalized, layer.weight("weight", {})});
  return layer.Rows(bias.empty() ? scaled : graph.Add(layer.name, "Add", {scaled, bias}));
}

}  // namespace

OnnxValue AddBatchNorm(const OnnxLayer& layer) {
  const OnnxValue x = ChannelsFirst(layer);
  const std::string y = layer.graph.Add(
      layer.name, "BatchNormalization",
      {x.name, layer.weight("weight", {}), layer.weight("bias", {}),
       layer.weight("running_mean", {}), layer.weight("running_var", {})},
      {FloatAttribute("epsilon", static_cast<float>(layer.config.batch_norm().epsilon()))});
  return {y, x.shape, x.layout};
}

// Adds layer normalisation of an image. A part is a pixel, and its elements are the pixel's
// channels.
OnnxValue AddLayerNorm(const OnnxLayer& layer) {
  if (layer.input.rows()) return AddLayerNormOfRows(layer);
  const ImageShape& shape = layer.input.shape;
  GraphWriter& graph = layer.graph;
  const size_t pixels = size_t{shape.height} * shape.width;
  const std::vector<int64_t> dims = {0, shape.channels, static_cast<int64_t>(pixels)};
  const auto swap = IntsAttribute("perm", {0, 2, 1});
  const std::string x = graph.Reshape(layer.Part("pixels"), layer.input.name, dims);
  const std::string parts = graph.Add(layer.Part("parts"), "Transpose", {x}, {swap});
  const std::string normalized =
      Normalized(layer, parts, pixels, layer.config.layer_norm().epsilon());
  return Scaled(layer, layer.input,
                graph.Add(layer.Part("back"), "Transpose", {normalized}, {swap}));
}

// Adds group normalisation. A part is a group, and its elements are all values of the group's
// channels.
OnnxValue AddGroupNorm(const OnnxLayer& layer) {
  const v1::GroupNorm& norm = layer.config.group_norm();
  const OnnxValue x = ChannelsFirst(layer);
  const std::string parts =
      layer.graph.Reshape(layer.Part("groups"), x.name, {0, norm.groups(), -1});
  return Scaled(layer, x, Normalized(layer, parts, norm.groups(), norm.epsilon()));
}

}  // namespace leeway
