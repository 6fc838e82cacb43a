#include "worker/onnx/onnx_layers.h"

namespace leeway {
namespace {

std::string Reshaped(const OnnxLayer& layer, const char* part, const std::string& x,
                     const std::vector<int64_t>& dims) {
  const std::string shape = layer.graph.AddInts(layer.Part(part) + ".shape", dims);
  return layer.graph.Add(layer.Part(part), "Reshape", {x, shape});
}

// Of `x` [N, parts, elements], (x - mean) / sqrt(variance + epsilon) over the elements of each
// part.
std::string Normalized(const OnnxLayer& layer, const std::string& x, size_t parts, double epsilon) {
  GraphWriter& graph = layer.graph;
  const auto count = static_cast<int64_t>(parts);
  const std::vector<float> ones(parts, 1.0f), zeros(parts, 0.0f);
  const std::string scale = graph.AddFloats(layer.Part("ones"), {count}, ones);
  const std::string shift = graph.AddFloats(layer.Part("zeros"), {count}, zeros);
  return graph.Add(layer.Part("normalized"), "InstanceNormalization", {x, scale, shift},
                   {FloatAttribute("epsilon", static_cast<float>(epsilon))});
}

// `x`, in whatever dimensions, as the layer's input has it, times the layer's weight of each
// channel, plus its bias if it has one.
OnnxValue Scaled(const OnnxLayer& layer, const std::string& x) {
  const OnnxValue& like = layer.input;
  const int64_t channels = like.shape.channels;
  std::vector<int64_t> dims = {0, channels}, each = {channels};
  if (like.image) {
    dims.insert(dims.end(), {like.shape.height, like.shape.width});
    each.insert(each.end(), {1, 1});
  }
  const std::string shaped = Reshaped(layer, "channels", x, dims);
  const std::string bias = layer.weight("bias", each);
  const std::string product = layer.graph.Add(bias.empty() ? layer.name : layer.Part("scaled"),
                                              "Mul", {shaped, layer.weight("weight", each)});
  const std::string y =
      bias.empty() ? product : layer.graph.Add(layer.name, "Add", {product, bias});
  return {y, like.shape, like.image};
}

}  // namespace

OnnxValue AddBatchNorm(const OnnxLayer& layer) {
  const std::string y = layer.graph.Add(
      layer.name, "BatchNormalization",
      {layer.input.name, layer.weight("weight", {}), layer.weight("bias", {}),
       layer.weight("running_mean", {}), layer.weight("running_var", {})},
      {FloatAttribute("epsilon", static_cast<float>(layer.config.batch_norm().epsilon()))});
  return {y, layer.input.shape, layer.input.image};
}

// A part is a pixel, whose elements are its channels.
OnnxValue AddLayerNorm(const OnnxLayer& layer) {
  const ImageShape& shape = layer.input.shape;
  GraphWriter& graph = layer.graph;
  const size_t pixels = size_t{shape.height} * shape.width;
  const std::vector<int64_t> dims = {0, shape.channels, static_cast<int64_t>(pixels)};
  const auto swap = IntsAttribute("perm", {0, 2, 1});
  const std::string x = Reshaped(layer, "pixels", layer.input.name, dims);
  const std::string parts = graph.Add(layer.Part("parts"), "Transpose", {x}, {swap});
  const std::string normalized =
      Normalized(layer, parts, pixels, layer.config.layer_norm().epsilon());
  return Scaled(layer, graph.Add(layer.Part("back"), "Transpose", {normalized}, {swap}));
}

// A part is a group, whose elements are its channels' pixels.
OnnxValue AddGroupNorm(const OnnxLayer& layer) {
  const v1::GroupNorm& norm = layer.config.group_norm();
  const std::string parts = Reshaped(layer, "groups", layer.input.name, {0, norm.groups(), -1});
  return Scaled(layer, Normalized(layer, parts, norm.groups(), norm.epsilon()));
}

}  // namespace leeway
