#include "worker/onnx/onnx_layers.h"

namespace leeway {

// Adds 1/2 sum_f ((x V)_f^2 - (x^2 V^2)_f). The features of an image are read row by row, in the
// order of the weights.
OnnxValue AddFactorInteraction(const OnnxLayer& layer) {
  GraphWriter& graph = layer.graph;
  std::string x = layer.input.name;
  if (layer.input.layout != OnnxLayout::kFlat) {
    const auto features = static_cast<int64_t>(layer.input.shape.elements());
    const std::string rows = graph.Rows(layer.Part("rows"), layer.input).name;
    x = graph.Reshape(layer.Part("features"), rows, {0, features});
  }
  const std::string weight = layer.weight("weight", {});
  const std::string sums = graph.Add(layer.Part("sums"), "MatMul", {x, weight});
  const std::string of_sums = graph.Add(layer.Part("squared_sums"), "Mul", {sums, sums});
  const std::string x_squared = graph.Add(layer.Part("squared_input"), "Mul", {x, x});
  const std::string squared = graph.Add(layer.Part("squared_weight"), "Mul", {weight, weight});
  const std::string own = graph.Add(layer.Part("own_pairs"), "MatMul", {x_squared, squared});
  const std::string twice = graph.Add(layer.Part("twice"), "Sub", {of_sums, own});
  const std::string sum = graph.Add(layer.Part("sum"), "ReduceSum", {twice},
                                    {IntsAttribute("axes", {1}), IntAttribute("keepdims", 1)});
  return {graph.Add(layer.name, "Mul", {sum, graph.AddFloat(layer.Part("half"), 0.5f)}),
          layer.layer.output(), OnnxLayout::kFlat};
}

}  // namespace leeway
