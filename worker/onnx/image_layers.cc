#include "worker/formats/torch_names.h"
#include "worker/onnx/onnx_layers.h"

namespace leeway {
namespace {

std::vector<int64_t> Twice(int64_t side) { return {side, side}; }
std::vector<int64_t> FourTimes(int64_t side) { return {side, side, side, side}; }

OnnxValue AddPool(const OnnxLayer& layer, const std::string& op, const v1::Pool& pool) {
  const OnnxValue x = layer.graph.Image(layer.Part("input"), layer.input);
  const int64_t stride = pool.has_stride() ? pool.stride() : pool.size();
  const std::string y = layer.graph.Add(
      layer.name, op, {x.name},
      {IntsAttribute("kernel_shape", Twice(pool.size())), IntsAttribute("strides", Twice(stride)),
       IntsAttribute("pads", FourTimes(pool.padding()))});
  return {y, layer.layer.output(), OnnxLayout::kImage};
}

// Appends the name of a tensor to `inputs`, unless the layer has no such tensor.
void Append(std::string weight, std::vector<std::string>& inputs) {
  if (!weight.empty()) inputs.push_back(std::move(weight));
}

}  // namespace

OnnxValue AddConv2d(const OnnxLayer& layer) {
  const v1::Conv2d& conv = layer.config.conv2d();
  const OnnxValue x = layer.graph.Image(layer.Part("input"), layer.input);
  std::vector<std::string> inputs = {x.name, layer.weight("weight", {})};
  Append(layer.weight("bias", {}), inputs);
  const std::string y = layer.graph.Add(
      layer.name, "Conv", inputs,
      {IntsAttribute("kernel_shape", Twice(conv.kernel())),
       IntsAttribute("strides", Twice(conv.stride())),
       IntsAttribute("pads", FourTimes(conv.padding())), IntAttribute("group", conv.groups())});
  return {y, layer.layer.output(), OnnxLayout::kImage};
}

namespace {

// Adds a dense layer that computes the same function for each pixel.
OnnxValue AddPointwise(const OnnxLayer& layer) {
  const ImageShape& output = layer.layer.output();
  std::vector<std::string> inputs = {
      layer.input.name,
      layer.weight("weight", {output.channels, layer.input.shape.channels, 1, 1})};
  Append(layer.weight("bias", {}), inputs);
  // ONNX would infer the kernel's shape, but OpenCV does not read a node without this attribute.
  return {layer.graph.Add(layer.name, "Conv", inputs, {IntsAttribute("kernel_shape", Twice(1))}),
          output, OnnxLayout::kImage};
}

}  // namespace

OnnxValue AddDense(const OnnxLayer& layer) {
  if (!layer.layer.output().flat()) {
    // A weight with its inputs first would need another layout in a convolution, so the layer
    // becomes a matrix product.
    const bool by_rows = layer.input.rows() || KeepsInputsFirst(layer.name);
    return by_rows ? AddDenseOfRows(layer) : AddPointwise(layer);
  }
  const OnnxValue x = layer.graph.Flat(layer.Part("input"), layer.input);
  const uint32_t units = layer.layer.output().channels;
  const std::string weight = layer.weight("weight", {});
  std::string bias = layer.weight("bias", {});
  // Before opset 11 the bias is required.
  if (bias.empty()) {
    bias = layer.graph.AddFloats(layer.Part("no_bias"), {units}, std::vector<float>(units));
  }
  const int64_t units_first = KeepsInputsFirst(layer.name) ? 0 : 1;
  return {layer.graph.Add(layer.name, "Gemm", {x.name, weight, bias},
                          {IntAttribute("transB", units_first)}),
          layer.layer.output(), OnnxLayout::kFlat};
}

OnnxValue AddMaxPool(const OnnxLayer& layer) {
  return AddPool(layer, "MaxPool", layer.config.max_pool());
}

OnnxValue AddAvgPool(const OnnxLayer& layer) {
  return AddPool(layer, "AveragePool", layer.config.avg_pool());
}

OnnxValue AddGlobalAvgPool(const OnnxLayer& layer) {
  const OnnxValue x = layer.graph.Image(layer.Part("input"), layer.input);
  return {layer.graph.Add(layer.name, "GlobalAveragePool", {x.name}), layer.layer.output(),
          OnnxLayout::kImage};
}

OnnxValue AddPadChannels(const OnnxLayer& layer) {
  const v1::PadChannels& pad = layer.config.pad_channels();
  const OnnxValue x = layer.graph.Image(layer.Part("input"), layer.input);
  // The numbers of zeros before each of the four dimensions, and then after each of them.
  const auto pads = IntsAttribute("pads", {0, pad.before(), 0, 0, 0, pad.after(), 0, 0});
  return {layer.graph.Add(layer.name, "Pad", {x.name}, {pads}), layer.layer.output(),
          OnnxLayout::kImage};
}

OnnxValue AddFlatten(const OnnxLayer& layer) { return layer.graph.Flat(layer.name, layer.input); }

}  // namespace leeway
