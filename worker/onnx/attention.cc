#include <algorithm>
#include <cmath>

#include "worker/compute/shapes.h"
#include "worker/onnx/onnx_layers.h"

namespace leeway {
namespace {

// This number is added to a score whose key must not be seen, so that the softmax makes its weight
// 0.
constexpr float kHidden = -1e9f;

// Builds the nodes of an attention layer. Values of the heads are [N, heads, positions, width].
class AttentionNodes {
 public:
  explicit AttentionNodes(const OnnxLayer& layer)
      : layer_(layer),
        graph_(layer.graph),
        config_(layer.config.attention()),
        positions_(layer.input.positions()),
        channels_(layer.input.shape.channels),
        width_(channels_ / config_.heads()) {}

  std::string Output(const std::string& x) const {
    const std::string qkv =
        AddProjection(layer_, layer_.Part("qkv"), x, layer_.weight("qkv_weight", {}),
                      layer_.weight("qkv_bias", {}));
    // The shape of the permuted value is [3, N, heads, positions, width].
    const std::string parts = Permuted(
        "parts",
        graph_.Reshape(layer_.Part("split"), qkv, {0, positions_, 3, config_.heads(), width_}),
        {2, 0, 3, 1, 4});
    const std::string queries = Rotated("queries", Part("queries", parts, 0));
    const std::string keys = Rotated("keys", Part("keys", parts, 1));
    const std::string mixed = graph_.Add(layer_.Part("mixed"), "MatMul",
                                         {Shares(queries, keys), Part("values", parts, 2)});
    const std::string joined =
        graph_.Reshape(layer_.Part("joined"), Permuted("by_position", mixed, {0, 2, 1, 3}),
                       {0, positions_, channels_});
    return AddProjection(layer_, layer_.name, joined, layer_.weight("out_weight", {}),
                         layer_.weight("out_bias", {}));
  }

 private:
  std::string Permuted(const char* part, const std::string& x,
                       const std::vector<int64_t>& order) const {
    return graph_.Add(layer_.Part(part), "Transpose", {x}, {IntsAttribute("perm", order)});
  }

  std::string Part(const char* part, const std::string& parts, int64_t which) const {
    return graph_.Add(layer_.Part(part), "Gather", {parts, Number(which)},
                      {IntAttribute("axis", 0)});
  }

  std::string Number(int64_t number) const {
    const std::string name = "number_" + std::to_string(number);
    return graph_.Shared(name, [&] { return graph_.AddInt(name, number); });
  }

  // Adds the softmax of q k^T / sqrt(width) over the keys that a position sees. Returns its name.
  std::string Shares(const std::string& queries, const std::string& keys) const {
    const std::string turned = Permuted("keys_turned", keys, {0, 1, 3, 2});
    const std::string products = graph_.Add(layer_.Part("products"), "MatMul", {queries, turned});
    const std::string scale =
        graph_.AddFloat(layer_.Part("scale"), 1.0f / std::sqrt(static_cast<float>(width_)));
    std::string scores = graph_.Add(layer_.Part("scores"), "Mul", {products, scale});
    if (config_.causal()) {
      scores = graph_.Add(layer_.Part("seen"), "Add", {scores, CausalMask()});
    }
    return graph_.Add(layer_.Part("shares"), "Softmax", {scores}, {IntAttribute("axis", 3)});
  }

  // Adds the mask [positions, positions]. It is 0 where the row's position sees the column's
  // position.
  std::string CausalMask() const {
    const std::string name = "causal_mask_" + std::to_string(positions_);
    return graph_.Shared(name, [&] {
      const auto side = static_cast<size_t>(positions_);
      std::vector<float> mask(side * side, 0.0f);
      for (size_t row = 0; row < side; ++row) {
        std::fill(mask.begin() + row * side + row + 1, mask.begin() + (row + 1) * side, kHidden);
      }
      return graph_.AddFloats(name, {positions_, positions_}, mask);
    });
  }

  // Adds rotary positions. Each pair (a, b) of channels i and i + width/2 becomes (a cos - b sin, b
  // cos + a sin). This is x cos + (x with its halves exchanged) sin, where sin is negative in the
  // first half.
  std::string Rotated(const char* part, const std::string& x) const {
    if (!config_.rotary()) return x;
    const std::string name = layer_.Part(part);
    const std::string exchanged = graph_.Add(name + ".exchanged", "Gather", {x, HalvesExchanged()},
                                             {IntAttribute("axis", 3)});
    const std::string along =
        graph_.Add(name + ".along", "Mul", {x, RotaryTable("cosines", 1, std::cos)});
    const std::string across =
        graph_.Add(name + ".across", "Mul", {exchanged, RotaryTable("sines", -1, std::sin)});
    return graph_.Add(name + ".rotated", "Add", {along, across});
  }

  std::string HalvesExchanged() const {
    const std::string name = "rotary_halves_" + std::to_string(width_);
    return graph_.Shared(name, [&] {
      std::vector<int64_t> order;
      for (int64_t i = 0; i < width_; ++i) order.push_back((i + width_ / 2) % width_);
      return graph_.AddInts(name, order);
    });
  }

  // Adds the table [positions, width] of the function `of` at each angle. `sign` is the factor for
  // the first half of the columns.
  std::string RotaryTable(const char* kind, double sign, double (*of)(double)) const {
    const std::string name = std::string("rotary_") + kind + "_" + std::to_string(positions_) +
                             "x" + std::to_string(width_);
    return graph_.Shared(name, [&] {
      std::vector<float> table;
      const int64_t half = width_ / 2;
      for (int64_t position = 0; position < positions_; ++position) {
        for (int64_t i = 0; i < width_; ++i) {
          const double value = of(RotaryAngle(position, i % half, width_));
          table.push_back(static_cast<float>(i < half ? sign * value : value));
        }
      }
      return graph_.AddFloats(name, {positions_, width_}, table);
    });
  }

  const OnnxLayer& layer_;
  GraphWriter& graph_;
  const v1::Attention& config_;
  const int64_t positions_;
  const int64_t channels_;
  const int64_t width_;
};

}  // namespace

OnnxValue AddAttention(const OnnxLayer& layer) {
  const OnnxValue x = layer.graph.Rows(layer.Part("input"), layer.input);
  return layer.Rows(AttentionNodes(layer).Output(x.name));
}

}  // namespace leeway
