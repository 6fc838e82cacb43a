#include <numbers>

#include "worker/onnx/onnx_layers.h"

namespace leeway {
namespace {

OnnxValue Named(const OnnxLayer& layer, std::string name) {
  return {std::move(name), layer.input.shape, layer.input.layout};
}

// Adds x/2 (1 + s), where `s` is the name of a value.
std::string HalfOf(const OnnxLayer& layer, const std::string& s) {
  GraphWriter& graph = layer.graph;
  const std::string sum =
      graph.Add(layer.Part("plus_one"), "Add", {s, graph.AddFloat(layer.Part("one"), 1)});
  const std::string product = graph.Add(layer.Part("times_x"), "Mul", {layer.input.name, sum});
  return graph.Add(layer.name, "Mul", {product, graph.AddFloat(layer.Part("half"), 0.5f)});
}

// Adds erf(x / sqrt(2)).
std::string ErfOf(const OnnxLayer& layer) {
  GraphWriter& graph = layer.graph;
  const std::string factor =
      graph.AddFloat(layer.Part("factor"), static_cast<float>(1 / std::numbers::sqrt2));
  const std::string scaled = graph.Add(layer.Part("scaled"), "Mul", {layer.input.name, factor});
  return graph.Add(layer.Part("erf"), "Erf", {scaled});
}

// Adds tanh(sqrt(2/pi) (x + 0.044715 x^3)) = tanh(x (a + b x^2)).
std::string TanhOf(const OnnxLayer& layer) {
  GraphWriter& graph = layer.graph;
  const double factor = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
  const std::string& x = layer.input.name;
  const std::string square = graph.Add(layer.Part("square"), "Mul", {x, x});
  const std::string b = graph.AddFloat(layer.Part("b"), static_cast<float>(0.044715 * factor));
  const std::string a = graph.AddFloat(layer.Part("a"), static_cast<float>(factor));
  const std::string bx = graph.Add(layer.Part("b_square"), "Mul", {square, b});
  const std::string sum = graph.Add(layer.Part("a_plus"), "Add", {bx, a});
  const std::string inner = graph.Add(layer.Part("inner"), "Mul", {x, sum});
  return graph.Add(layer.Part("tanh"), "Tanh", {inner});
}

}  // namespace

OnnxValue AddNothing(const OnnxLayer& layer) { return layer.input; }

OnnxValue AddRelu(const OnnxLayer& layer) {
  return Named(layer, layer.graph.Add(layer.name, "Relu", {layer.input.name}));
}

OnnxValue AddRelu6(const OnnxLayer& layer) {
  return Named(layer, layer.graph.Add(layer.name, "Clip", {layer.input.name},
                                      {FloatAttribute("min", 0), FloatAttribute("max", 6)}));
}

OnnxValue AddSilu(const OnnxLayer& layer) {
  const std::string sigmoid = layer.graph.Add(layer.Part("sigmoid"), "Sigmoid", {layer.input.name});
  return Named(layer, layer.graph.Add(layer.name, "Mul", {layer.input.name, sigmoid}));
}

OnnxValue AddTanh(const OnnxLayer& layer) {
  return Named(layer, layer.graph.Add(layer.name, "Tanh", {layer.input.name}));
}

OnnxValue AddGelu(const OnnxLayer& layer) {
  const std::string s = layer.config.gelu().tanh() ? TanhOf(layer) : ErfOf(layer);
  return Named(layer, HalfOf(layer, s));
}

}  // namespace leeway
