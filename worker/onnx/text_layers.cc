// Layers of transformers. Their values are rows: [N, positions, channels].
#include "worker/formats/torch_names.h"
#include "worker/onnx/onnx_layers.h"

namespace leeway {
namespace {

std::string Transposed(const OnnxLayer& layer, const std::string& weight) {
  return layer.graph.Add(weight + ".transposed", "Transpose", {weight},
                         {IntsAttribute("perm", {1, 0})});
}

}  // namespace

std::string AddProjection(const OnnxLayer& layer, const std::string& name, const std::string& x,
                          const std::string& weight, const std::string& bias) {
  if (bias.empty()) return layer.graph.Add(name, "MatMul", {x, weight});
  const std::string product = layer.graph.Add(name + ".product", "MatMul", {x, weight});
  return layer.graph.Add(name, "Add", {product, bias});
}

OnnxValue AddEmbedding(const OnnxLayer& layer) {
  return layer.Rows(layer.graph.Add(layer.name, "Gather",
                                    {layer.weight("weight", {}), layer.input.name},
                                    {IntAttribute("axis", 0)}));
}

OnnxValue AddPositionEmbedding(const OnnxLayer& layer) {
  const OnnxValue x = layer.graph.Rows(layer.Part("input"), layer.input);
  return layer.Rows(layer.graph.Add(layer.name, "Add", {x.name, layer.weight("weight", {})}));
}

OnnxValue AddTiedDense(const OnnxLayer& layer) {
  const OnnxValue x = layer.graph.Rows(layer.Part("input"), layer.input);
  return layer.Rows(
      AddProjection(layer, layer.name, x.name, Transposed(layer, layer.weight("weight", {})), ""));
}

OnnxValue AddDenseOfRows(const OnnxLayer& layer) {
  const OnnxValue x = layer.graph.Rows(layer.Part("input"), layer.input);
  const std::string weight = layer.weight("weight", {});
  const std::string by_inputs = KeepsInputsFirst(layer.name) ? weight : Transposed(layer, weight);
  return layer.Rows(AddProjection(layer, layer.name, x.name, by_inputs, layer.weight("bias", {})));
}

}  // namespace leeway
