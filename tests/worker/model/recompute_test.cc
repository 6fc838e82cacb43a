// Layers that are computed again in the backward pass: less memory, and the same bits.
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "config/model/layer_tree.h"
#include "config/model/named_models.h"
#include "tests/same_bits.h"
#include "tests/worker/model/random_tree.h"
#include "tests/worker/model/support.h"
#include "worker/model/train_observer.h"

namespace leeway::testing::recompute {
namespace {

// What is final leaves at once; its memory then has arbitrary values.
class Leaving : public TrainObserver {
 public:
  Leaving(std::vector<float>& weights, std::vector<float>& contribution)
      : sent(contribution.size()), weights_(weights), contribution_(contribution) {}

  absl::Status OnFinal(std::span<const ElementRange> elements, bool) override {
    for (const ElementRange& range : elements) {
      std::copy_n(contribution_.begin() + range.offset, range.count, sent.begin() + range.offset);
      std::fill_n(contribution_.begin() + range.offset, range.count, kGone);
      std::fill_n(weights_.begin() + range.offset, range.count,
                  std::numeric_limits<float>::infinity());
    }
    return absl::OkStatus();
  }

  static constexpr float kGone = -77;
  std::vector<float> sent;

 private:
  std::vector<float>& weights_;
  std::vector<float>& contribution_;
};

struct Data {
  ImageShape image = RandomTree::kImage;
  uint32_t classes = 3;
  // 0: features are numbers and not tokens.
  uint32_t vocabulary = 0;
  size_t examples = 4;
};

Batch BatchOf(const Data& data, uint64_t seed) {
  const size_t elements = data.image.elements();
  if (data.vocabulary == 0) return RandomBatch(data.examples, elements, data.classes, seed);
  Batch batch = RandomBatch(data.examples * elements, 1, data.vocabulary, seed);
  batch.features = RandomBatch(data.examples * elements, 1, data.vocabulary, seed + 9).labels;
  batch.size = data.examples;
  return batch;
}

std::unique_ptr<Model> Built(const v1::Model& config, const Data& data, Backend& backend) {
  auto model = Model::Build(config, data.image, data.classes, backend,
                            data.vocabulary == 0 ? 1 : data.image.elements());
  INFO(model.status());
  REQUIRE(model.ok());
  return *std::move(model);
}

// Returns the weights after a few steps of plain SGD, and the losses.
std::vector<float> Trained(Model& model, const Data& data) {
  std::vector<float> newest = InitialWeights(model, 3), contribution(newest.size());
  std::vector<float> losses;
  for (uint64_t step = 0; step < 3; ++step) {
    std::vector<float> weights = newest;
    Leaving observer(weights, contribution);
    const auto loss =
        model.Train(BatchOf(data, step), weights, {1, step, 2}, contribution, &observer);
    INFO(loss.status());
    REQUIRE(loss.ok());
    losses.push_back(static_cast<float>(*loss));
    // Nothing was written after it had left.
    CHECK(contribution == std::vector<float>(contribution.size(), Leaving::kGone));
    for (size_t i = 0; i < newest.size(); ++i) newest[i] -= 0.05f * observer.sent[i];
  }
  losses.push_back(static_cast<float>(model.Evaluate(BatchOf(data, 9), newest)->loss_sum));
  newest.insert(newest.end(), losses.begin(), losses.end());
  return newest;
}

TEST_CASE("a tree with layers that are computed again has the bits of one without") {
  const uint64_t seed = GENERATE(range(uint64_t{0}, uint64_t{80}));
  RandomTree tree(seed);
  const std::string text =
      absl::StrCat("layers { recompute { ", tree.Layers(0, 1 + seed % 3), "} } ", tree.Layers(3, 4),
                   "layers { dense { units: 3 } } loss: LOSS_SOFTMAX_CROSS_ENTROPY");
  CAPTURE(seed, text);
  const v1::Model again = ParseModel(text);
  const v1::Model kept = ParseModel(absl::StrReplaceAll(text, {{"recompute", "sequence"}}));
  auto backend = TestBackend();
  const Data data;
  auto model = Built(again, data, *backend), plain = Built(kept, data, *backend);
  CHECK(SameBits(Trained(*model, data), Trained(*plain, data)));
}

// Makes each composite layer compute again.
void Recompute(LayerList& layers) {
  for (int i = 0; i < layers.size(); ++i) {
    const v1::Layer layer = layers[i];
    if (!HasBranches(layer)) continue;
    layers[i].Clear();
    layers[i].set_name(LayerName(layer, i));
    *layers[i].mutable_recompute()->add_layers() = layer;
  }
}

// Returns a named model in which each block is computed again.
v1::Model Recomputed(v1::Model model) {
  for (v1::Layer& layer : *model.mutable_layers()) {
    if (layer.has_sequence()) Recompute(*layer.mutable_sequence()->mutable_layers());
  }
  return model;
}

struct Named {
  std::string text;
  Data data;
  uint32_t threads = 1;
};

TEST_CASE("models by name have the same weights to the bit, in less memory") {
  const Named named =
      GENERATE(Named{"layers { resnet20 { classes: 3 } }", {{8, 8, 3}}, 2},
               Named{"layers { resnet20 { classes: 3 } }", {{8, 8, 3}}},
               Named{"layers { mobilenet_v2 { classes: 3 dropout: 0.2 } }", {{8, 8, 3}}},
               Named{"layers { gpt { vocabulary: 7 layers: 3 width: 8 heads: 2 dropout: 0.2 } }",
                     {{5, 1, 1}, 7, 7}});
  CAPTURE(named.text, named.threads);
  v1::Model config = ParseModel(named.text + " loss: LOSS_SOFTMAX_CROSS_ENTROPY");
  ExpandNamedModels(config);
  auto backend = TestBackend(named.threads);
  auto plain = Built(config, named.data, *backend);
  auto model = Built(Recomputed(config), named.data, *backend);
  CHECK(model->graph().segments.size() > 1);
  CHECK(SameBits(Trained(*model, named.data), Trained(*plain, named.data)));
  CHECK(model->PlanMemory(64, false).activations() < plain->PlanMemory(64, false).activations());
}

TEST_CASE("segments take turns with one memory, and keep only what they give") {
  const std::string block =
      "layers { dense { units: 32 } } layers { tanh {} } layers { dense { units: 32 } } "
      "layers { tanh {} } ";
  const std::string head = "layers { dense { units: 3 } } loss: LOSS_SOFTMAX_CROSS_ENTROPY";
  auto backend = TestBackend();
  const auto plan_of = [&](const std::string& kind) {
    return BuildModel(
               "layers { repeat { times: 4 layers { " + kind + " { " + block + "} } } } " + head,
               {1, 1, 32}, 3, *backend)
        ->PlanMemory(16, false);
  };
  // Each dense layer's output is 16 x 32 floats, and tanh overwrites it with its own output.
  const MemoryPlan again = plan_of("recompute"), kept = plan_of("sequence");
  CHECK(again.recomputed == 512);
  CHECK(again.layers ==
        std::vector<uint64_t>{0, 0, 512, 0, 0, 0, 512, 0, 0, 0, 512, 0, 0, 0, 512, 0, 48});
  CHECK(kept.recomputed == 0);
  CHECK(kept.activations() - again.activations() == 3 * 512);
}

}  // namespace
}  // namespace leeway::testing::recompute
