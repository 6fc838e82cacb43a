// Layers within layers: shapes, names, and gradients of models that are trees.
#include "worker/model/graph.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "tests/worker/model/random_tree.h"
#include "tests/worker/model/support.h"
#include "worker/compute/eigen/eigen_backend.h"
#include "worker/model/train_observer.h"

namespace leeway::testing::graph {
namespace {

// Sums are added in another order, and a normalisation over two channels amplifies the difference.
constexpr double kOrderTolerance = 1e-4;

std::string Errors(const std::string& layers, const ImageShape& input = {4, 4, 3}) {
  return std::string(MakeGraph(ParseModel(layers), input).status().message());
}

std::vector<std::string> Names(const Graph& graph) {
  std::vector<std::string> names;
  for (const Node& node : graph.nodes) names.push_back(node.name);
  return names;
}

// Computes the batch in the plainest way: each value and each gradient has memory of its own. The
// gradients of the trained tensors are in the order of the flat vector.
class Plain {
 public:
  Plain(const v1::Model& config, const ImageShape& input, const Batch& batch,
        std::vector<float> weights)
      : graph_(*MakeGraph(config, input)), batch_(batch), weights_(std::move(weights)) {
    values_.resize(graph_.values.size());
    gradients_.resize(graph_.values.size());
    saved_.resize(graph_.nodes.size());
    values_[0] = batch.features;
    size_t offset = 0;
    for (const Node& node : graph_.nodes) {
      offsets_.push_back(offset);
      if (node.layer == nullptr) continue;
      for (const TensorPlan& plan : node.layer->tensors()) {
        if (plan.trained) offset += plan.elements();
      }
    }
    contribution_.resize(weights_.size());
  }

  std::vector<float> Run(const Draw& draw) {
    for (size_t i = 0; i < graph_.nodes.size(); ++i) Forward(i, draw);
    for (size_t v = 0; v < values_.size(); ++v) gradients_[v].assign(values_[v].size(), 0);
    LossSum sum;
    backend_->SoftmaxCrossEntropy({batch_.size, graph_.values.back().shape.channels},
                                  values_.back().data(), batch_.labels.data(), &sum,
                                  gradients_.back().data());
    for (size_t i = graph_.nodes.size(); i-- > 0;) Backward(i, draw);
    return contribution_;
  }

 private:
  Pass PassOf(size_t i, const Draw& draw) {
    const Layer& layer = *graph_.nodes[i].layer;
    read_.clear(), written_.clear();
    size_t at = offsets_[i];
    ignored_.resize(1 << 12);
    for (const TensorPlan& plan : layer.tensors()) {
      read_.push_back(plan.trained ? weights_.data() + at : ignored_.data());
      written_.push_back(plan.trained ? contribution_.data() + at : ignored_.data());
      if (plan.trained) at += plan.elements();
    }
    saved_[i].resize(layer.saved(batch_.size));
    scratch_.resize(layer.scratch(*backend_, batch_.size));
    return {.backend = *backend_,
            .batch = batch_.size,
            .training = true,
            .draw = draw,
            .layer = static_cast<uint32_t>(i),
            .weights = read_,
            .contributions = written_,
            .saved = saved_[i].data(),
            .scratch = scratch_.data()};
  }

  size_t Width(size_t value) const { return graph_.values[value].shape.channels; }

  void Forward(size_t i, const Draw& draw) {
    const Node& node = graph_.nodes[i];
    std::vector<float>& y = values_[i + 1];
    if (node.kind == Node::Kind::kLayer && !node.is_view()) {
      y.assign(batch_.size * graph_.output(i).shape.elements(), 7.0f);
      return node.layer->Forward(PassOf(i, draw), values_[node.inputs[0]].data(), y.data());
    }
    if (node.kind == Node::Kind::kConcat) return Concat(i, y);
    y = values_[node.inputs[0]];
    if (node.kind != Node::Kind::kAdd) return;
    for (size_t k = 0; k < y.size(); ++k) y[k] += values_[node.inputs[1]][k];
  }

  void Concat(size_t i, std::vector<float>& y) {
    const size_t rows = batch_.size * graph_.output(i).shape.elements() / Width(i + 1);
    for (size_t row = 0; row < rows; ++row) {
      for (const size_t input : graph_.nodes[i].inputs) {
        const auto begin = values_[input].begin() + static_cast<long>(row * Width(input));
        y.insert(y.end(), begin, begin + static_cast<long>(Width(input)));
      }
    }
  }

  void Backward(size_t i, const Draw& draw) {
    const Node& node = graph_.nodes[i];
    std::vector<float> dy = gradients_[i + 1];
    if (node.kind == Node::Kind::kConcat) return BackwardConcat(i, dy);
    for (const size_t input : node.inputs) {
      std::vector<float> dx = dy;
      if (node.kind == Node::Kind::kLayer && !node.is_view()) {
        dx.assign(values_[input].size(), 7.0f);
        node.layer->Backward(PassOf(i, draw), values_[input].data(), values_[i + 1].data(),
                             dy.data(), dx.data());
      }
      for (size_t k = 0; k < dx.size(); ++k) gradients_[input][k] += dx[k];
    }
  }

  void BackwardConcat(size_t i, const std::vector<float>& dy) {
    size_t at = 0;
    for (size_t row = 0; at < dy.size(); ++row) {
      for (const size_t input : graph_.nodes[i].inputs) {
        for (size_t k = 0; k < Width(input); ++k) {
          gradients_[input][row * Width(input) + k] += dy[at++];
        }
      }
    }
  }

  std::unique_ptr<Backend> backend_ = *EigenBackend::Make(1);
  const Graph graph_;
  const Batch batch_;
  const std::vector<float> weights_;
  std::vector<float> contribution_;
  std::vector<size_t> offsets_;
  std::vector<std::vector<float>> values_, gradients_, saved_;
  std::vector<float> scratch_, ignored_;
  std::vector<const float*> read_;
  std::vector<float*> written_;
};

TEST_CASE("a tree's gradients are those of each node by itself, whatever shares memory") {
  const uint64_t seed = GENERATE(range(uint64_t{0}, uint64_t{60}));
  RandomTree tree(seed);
  const std::string text = absl::StrCat(
      tree.Layers(3, 3), "layers { conv2d { filters: 2 kernel: 3", " } } ", tree.Layers(0, 1),
      "layers { flatten {} } layers { dense { units: 3 } } ", "loss: LOSS_SOFTMAX_CROSS_ENTROPY");
  // A depthwise layer behind the second convolution would have groups that do not fit.
  const bool fits = MakeGraph(ParseModel(text), RandomTree::kImage).ok();
  if (!fits) return;
  CAPTURE(seed, text);
  auto backend = TestBackend();
  auto model = BuildModel(text, RandomTree::kImage, 3, *backend);
  const Batch batch = RandomBatch(4, RandomTree::kImage.elements(), 3, seed);
  std::vector<float> weights = InitialWeights(*model, seed);
  const Draw draw{seed, 5, 1};
  std::vector<float> contribution(model->schema().total(), 7.0f);
  REQUIRE(model->Train(batch, weights, draw, contribution).ok());
  std::vector<float> plain = Plain(ParseModel(text), RandomTree::kImage, batch, weights).Run(draw);
  contribution.resize(model->schema().trained());
  plain.resize(model->schema().trained());
  CHECK(RelativeError(contribution, plain) < kOrderTolerance);
}

TEST_CASE("a tree's gradients are the slopes of its loss") {
  const std::string layers = GENERATE(
      // An identity shortcut, behind a layer that is trained.
      "layers { dense { units: 4 } } layers { residual { layers { dense { units: 4 } } layers { "
      "tanh {} } } }",
      // Both branches are trained, and so is the layer that they read.
      "layers { dense { units: 4 } } layers { residual { layers { tanh {} } layers { dense { "
      "units: "
      "3 } } shortcut { dense { units: 3 } } } }",
      // The example itself is the shortcut.
      "layers { residual { layers { dense { units: 5 } } layers { gelu {} } } }",
      // Branches of different widths, one of which works in place.
      "layers { dense { units: 3 } } layers { concat { branches { layers { tanh {} } } branches { "
      "layers { dense { units: 2 } } layers { silu {} } } } }",
      // Sums of sums, and views: several gradients share memory until they are added up.
      "layers { dense { units: 4 } } layers { residual { layers { residual { layers { tanh {} } } "
      "} "
      "} }",
      "layers { dense { units: 4 } } layers { residual { layers { flatten {} } shortcut { flatten "
      "{} } } } layers { gelu {} }",
      // Computed again from a value that other layers also read.
      "layers { dense { units: 4 } } layers { residual { layers { recompute { layers { tanh {} } "
      "layers { dense { units: 4 } } layers { tanh {} } } } } } layers { repeat { times: 2 layers "
      "{ recompute { layers { dense { units: 4 } } layers { gelu {} } } } } }",
      "layers { dense { units: 6 } } layers { repeat { times: 3 layers { residual { layers { "
      "layer_norm {} } layers { dense { units: 6 } } layers { gelu {} } } } } }");
  CAPTURE(layers);
  auto backend = TestBackend();
  auto model =
      BuildModel(layers + " layers { dense { units: 3 } } loss: LOSS_SOFTMAX_CROSS_ENTROPY",
                 {1, 1, 5}, 3, *backend);
  const Batch batch = RandomBatch(4, 5, 3, 1);
  std::vector<float> weights = InitialWeights(*model, 2);
  std::vector<float> contribution(weights.size()), ignored(weights.size());
  REQUIRE(model->Train(batch, weights, {}, contribution).ok());
  std::vector<double> slopes;
  constexpr float kStep = 1.0f / 64;
  for (float& value : weights) {
    const float kept = value;
    value = kept + kStep;
    const float up = value;
    const double above = *model->Train(batch, weights, {}, ignored);
    value = kept - kStep;
    const double below = *model->Train(batch, weights, {}, ignored);
    slopes.push_back((above - below) / (static_cast<double>(up) - value) / batch.size);
    value = kept;
  }
  CHECK(RelativeError(contribution, slopes) < 2e-3);
}

TEST_CASE("a sequence has the bits of its layers in a row") {
  const std::string layers =
      "layers { conv2d { filters: 4 kernel: 3 } } layers { batch_norm {} } layers { relu {} }";
  const std::string head = "layers { dense { units: 3 } } loss: LOSS_SOFTMAX_CROSS_ENTROPY";
  auto backend = TestBackend();
  auto flat = BuildModel(layers + head, {8, 8, 2}, 3, *backend);
  auto tree = BuildModel("layers { sequence { " + layers + " } } " + head, {8, 8, 2}, 3, *backend);
  const Batch batch = RandomBatch(6, 128, 3, 1);
  const std::vector<float> weights = InitialWeights(*flat, 2);
  REQUIRE(InitialWeights(*tree, 2) == weights);
  std::vector<float> a(weights.size()), b(weights.size());
  const auto loss = flat->Train(batch, weights, {}, a);
  CHECK(*tree->Train(batch, weights, {}, b) == *loss);
  CHECK(a == b);
  CHECK(flat->PlanMemory(6, true).total() == tree->PlanMemory(6, true).total());
}

TEST_CASE("layers within layers have the names of both") {
  const auto graph = MakeGraph(ParseModel(R"(
      layers { name: "stem" conv2d { filters: 4 kernel: 3 padding: 1 } }
      layers { repeat { times: 2 layers { residual {
        layers { name: "conv" conv2d { filters: 4 kernel: 1 } }
        shortcut { conv2d { filters: 4 kernel: 1 } } } } } }
      layers { name: "both" concat { branches { layers { relu {} } } branches { layers { tanh {} } } } })"),
                               {4, 4, 3});
  REQUIRE(graph.ok());
  CHECK(Names(*graph) ==
        std::vector<std::string>{"stem", "repeat_1.0.residual_0.conv",
                                 "repeat_1.0.residual_0.shortcut.conv2d_0", "repeat_1.0.residual_0",
                                 "repeat_1.1.residual_0.conv",
                                 "repeat_1.1.residual_0.shortcut.conv2d_0", "repeat_1.1.residual_0",
                                 "both.0.relu_0", "both.1.tanh_0", "both"});
  CHECK(graph->nodes[2].key == "model.layers.1.repeat.layers.0.residual.shortcut.0");
  CHECK(graph->values.back().shape == ImageShape{4, 4, 8});
}

TEST_CASE("a model's error has the key of the layer within layers") {
  CHECK(Errors("layers { residual { layers { conv2d { filters: 4 kernel: 3 } } } }") ==
        "model.layers.0: the layers compute 2 x 2 x 4 and the shortcut computes 4 x 4 x 3, which "
        "cannot be added: give `shortcut` layers that end in the same shape, such as a conv2d with "
        "kernel 1");
  CHECK(
      Errors("layers { relu {} } layers { residual { layers { relu {} } layers { max_pool { size: "
             "9 } } } }") ==
      "model.layers.1.residual.layers.1: max_pool 'residual_1.max_pool_1': window size 9 is "
      "larger than the 4 x 4 input");
  CHECK(
      Errors("layers { concat { branches { layers { relu {} } } branches { layers { max_pool {} } "
             "} } }") ==
      "model.layers.0: branch 0 computes 4 x 4 x 3 and branch 1 computes 2 x 2 x 3: height and "
      "width must be the same");
  CHECK(Errors("layers { repeat { times: 3 layers { max_pool {} } } }") ==
        "model.layers.0.repeat.layers.0: max_pool 'repeat_0.2.max_pool_0': window size 2 is larger "
        "than the 1 x 1 input");
  CHECK(
      Errors("layers { sequence { layers { name: \"x\" relu {} } layers { name: \"x\" relu {} } } "
             "}") ==
      "model.layers.0.sequence.layers.1: the name 'sequence_0.x' is already used by "
      "model.layers.0.sequence.layers.0");
  CHECK(Errors("layers { recompute { layers { residual { layers { recompute { layers { relu {} } } "
               "} } } } }") ==
        "model.layers.0.recompute.layers.0.residual.layers.0: recompute "
        "'recompute_0.residual_0.recompute_0': is inside another recompute, which already computes "
        "all of its layers again: remove one of the two");
  CHECK(Errors("layers { conv2d { filters: 4 kernel: 1 groups: 2 } }") ==
        "model.layers.0: conv2d 'conv2d_0': groups 2 must divide the 3 channels and the 4 filters");
  CHECK(Errors("layers { group_norm { groups: 2 } }") ==
        "model.layers.0: group_norm 'group_norm_0': groups 2 must divide the 3 channels");
}

// A value with two readers must not change while a layer behind it is computed.
TEST_CASE("a value with two readers is not written over") {
  auto backend = TestBackend();
  auto model = BuildModel(
      "layers { conv2d { filters: 3 kernel: 1 } } layers { residual { layers { relu {} } } } "
      "layers { dense { units: 2 } } loss: LOSS_SOFTMAX_CROSS_ENTROPY",
      {2, 2, 3}, 2, *backend);
  auto apart = BuildModel(
      "layers { conv2d { filters: 3 kernel: 1 } } layers { residual { layers { max_pool { size: 1 "
      "} "
      "} layers { relu {} } } } layers { dense { units: 2 } } loss: LOSS_SOFTMAX_CROSS_ENTROPY",
      {2, 2, 3}, 2, *backend);
  const Batch batch = RandomBatch(3, 12, 2, 1);
  const std::vector<float> weights = InitialWeights(*model, 2);
  std::vector<float> a(weights.size()), b(weights.size());
  REQUIRE(model->Train(batch, weights, {}, a).ok());
  REQUIRE(apart->Train(batch, weights, {}, b).ok());
  CHECK(a == b);
}

// Blocks of tensors leave while the layers before them are computed.
TEST_CASE("a tree's tensors are final in the reverse order of its nodes") {
  class Order : public TrainObserver {
   public:
    absl::Status OnFinal(std::span<const ElementRange> elements, bool) override {
      for (const ElementRange& range : elements) offsets.push_back(range.offset);
      return absl::OkStatus();
    }
    std::vector<uint64_t> offsets;
  };
  auto backend = TestBackend();
  auto model = BuildModel(
      "layers { dense { units: 4 } } layers { residual { layers { dense { units: 4 } } layers { "
      "dense { units: 4 } } shortcut { dense { units: 4 } } } } layers { dense { units: 2 } } "
      "loss: LOSS_SOFTMAX_CROSS_ENTROPY",
      {1, 1, 4}, 2, *backend);
  Order order;
  std::vector<float> contribution(model->schema().total());
  REQUIRE(model->Train(RandomBatch(3, 4, 2, 1), InitialWeights(*model, 2), {}, contribution, &order)
              .ok());
  CHECK(order.offsets == std::vector<uint64_t>{80, 60, 40, 20, 0});
}

}  // namespace
}  // namespace leeway::testing::graph
