// Models of tokens: a label at each position, weights that two layers share, and attention.
#include <algorithm>

#include "config/model/named_models.h"
#include "tests/worker/model/support.h"

namespace leeway::testing::sequence {
namespace {

constexpr uint32_t kVocabulary = 7;
constexpr ImageShape kContext{5, 1, 1};

// Returns the tokens and labels of `size` examples.
Batch TokenBatch(size_t size, const ImageShape& shape, uint32_t vocabulary, uint64_t seed) {
  Batch batch{size, {}, {}};
  RandomStream stream(seed, RandomPurpose::kGenerate);
  for (size_t i = 0; i < size * shape.elements(); ++i) {
    batch.features.push_back(static_cast<float>(stream.Below(vocabulary)));
    batch.labels.push_back(static_cast<float>(stream.Below(vocabulary)));
  }
  return batch;
}

absl::StatusOr<std::unique_ptr<Model>> Build(const std::string& text, Backend& backend,
                                             const ImageShape& input = kContext,
                                             size_t labels = kContext.elements()) {
  v1::Model config = ParseModel(text + " loss: LOSS_SOFTMAX_CROSS_ENTROPY");
  ExpandNamedModels(config);
  return Model::Build(config, input, kVocabulary, backend, labels);
}

std::unique_ptr<Model> Built(const std::string& text, Backend& backend) {
  auto model = Build(text, backend);
  INFO(model.status());
  REQUIRE(model.ok());
  return *std::move(model);
}

// Returns larger weights than the initial ones, so that slopes are not lost in rounding.
std::vector<float> LargeWeights(const Model& model) {
  std::vector<float> weights = RandomValues(model.schema().total(), 3, 0.4);
  return weights;
}

void CheckSlopes(Model& model, const Batch& batch) {
  std::vector<float> weights = LargeWeights(model);
  std::vector<float> contribution(weights.size(), 7.0f), ignored(weights.size());
  REQUIRE(model.Train(batch, weights, {}, contribution).ok());
  std::vector<double> slopes;
  constexpr float kStep = 1.0f / 64;
  for (float& value : weights) {
    const float kept = value;
    value = kept + kStep;
    const float up = value;
    const double above = *model.Train(batch, weights, {}, ignored);
    value = kept - kStep;
    const double below = *model.Train(batch, weights, {}, ignored);
    slopes.push_back((above - below) / (static_cast<double>(up) - value) / batch.size);
    value = kept;
  }
  CHECK(RelativeError(contribution, slopes) < 2e-3);
}

TEST_CASE("gradients of models of tokens are the slopes of their loss") {
  const std::string layers = GENERATE(
      "layers { embedding { vocabulary: 7 width: 4 } } "
      "layers { dense { units: 7 pointwise: true } }",
      // The embedding's weight also computes the scores.
      "layers { name: \"e\" embedding { vocabulary: 8 width: 4 } } layers { tanh {} } "
      "layers { tied_dense { embedding: \"e\" } }",
      // The weight is read three times.
      "layers { name: \"e\" embedding { vocabulary: 7 width: 7 } } "
      "layers { tied_dense { embedding: \"e\" } } layers { tanh {} } "
      "layers { tied_dense { embedding: \"e\" } }",
      "layers { gpt { vocabulary: 7 layers: 2 width: 8 heads: 2 } }",
      "layers { gpt { vocabulary: 9 layers: 1 width: 4 heads: 1 bias: false rotary: true "
      "tanh_gelu: true } }",
      "label_smoothing: 0.2 layers { gpt { vocabulary: 7 layers: 1 width: 4 heads: 2 } }");
  CAPTURE(layers);
  auto backend = TestBackend(GENERATE(1u, 2u));
  auto model = Built(layers, *backend);
  const Batch batch = TokenBatch(3, kContext, kVocabulary, 1);
  CheckSlopes(*model, batch);
}

TEST_CASE("a tied weight leaves after its last use") {
  class Order : public TrainObserver {
   public:
    absl::Status OnFinal(std::span<const ElementRange> elements, bool) override {
      for (const ElementRange& range : elements) offsets.push_back(range.offset);
      return absl::OkStatus();
    }
    std::vector<uint64_t> offsets;
  };
  auto backend = TestBackend();
  auto model = Built(
      "layers { name: \"e\" embedding { vocabulary: 7 width: 2 } } "
      "layers { dense { units: 2 pointwise: true bias: false } } "
      "layers { tied_dense { embedding: \"e\" } }",
      *backend);
  Order order;
  std::vector<float> contribution(model->schema().total());
  REQUIRE(model
              ->Train(TokenBatch(2, kContext, kVocabulary, 1), InitialWeights(*model, 2), {},
                      contribution, &order)
              .ok());
  CHECK(order.offsets == std::vector<uint64_t>{14, 0});
  CHECK(model->schema().total() == 18);
}

TEST_CASE("an example's loss is the mean over its positions") {
  auto backend = TestBackend();
  auto model = Built("layers { gpt { vocabulary: 7 layers: 1 width: 4 heads: 2 } }", *backend);
  const std::vector<float> weights = LargeWeights(*model);
  const Batch batch = TokenBatch(3, kContext, kVocabulary, 1);
  std::vector<float> contribution(weights.size());
  const double loss = *model->Train(batch, weights, {}, contribution);
  const auto evaluation = model->Evaluate(batch, weights);
  REQUIRE(evaluation.ok());
  CHECK(evaluation->loss_sum == Approx(loss).epsilon(1e-6));
  CHECK(evaluation->examples == 3);
  CHECK(evaluation->labels == 15);
  // All classes have equal scores.
  const std::vector<float> zeros(weights.size(), 0.0f);
  CHECK(*model->Train(batch, zeros, {}, contribution) == Approx(3 * std::log(7.0)));
}

TEST_CASE("a causal model's scores do not depend on later tokens") {
  auto backend = TestBackend();
  const std::string attention =
      GENERATE("attention { heads: 2 }", "attention { heads: 2 rotary: true }");
  auto model = Built("layers { embedding { vocabulary: 7 width: 4 } } layers { " + attention +
                         " } layers { dense { units: 7 pointwise: true } }",
                     *backend);
  const std::vector<float> weights = LargeWeights(*model);
  // The loss of each position alone: only that position's label changes.
  Batch batch = TokenBatch(1, kContext, kVocabulary, 4);
  Batch later = batch;
  later.features[4] = static_cast<float>((static_cast<int>(batch.features[4]) + 1) % 7);
  const auto loss_of = [&](Batch one, size_t position, float label) {
    one.labels[position] = label;
    return model->Evaluate(one, weights)->loss_sum;
  };
  for (size_t position = 0; position < 5; ++position) {
    const double before = loss_of(batch, position, 0) - loss_of(batch, position, 1);
    const double after = loss_of(later, position, 0) - loss_of(later, position, 1);
    CAPTURE(position);
    if (position < 4) CHECK(before == Approx(after).margin(1e-6));
    if (position == 4) CHECK(std::abs(before - after) > 1e-4);
  }
}

TEST_CASE("smoothed labels are spread over all classes, in training only") {
  auto backend = TestBackend();
  const std::string dense = "layers { dense { units: 3 } } loss: LOSS_SOFTMAX_CROSS_ENTROPY";
  auto plain = BuildModel(dense, {1, 1, 2}, 3, *backend);
  auto smoothed = BuildModel("label_smoothing: 0.3 " + dense, {1, 1, 2}, 3, *backend);
  const Batch batch = RandomBatch(4, 2, 3, 1);
  const std::vector<float> weights = InitialWeights(*plain, 2);
  std::vector<float> contribution(weights.size());
  // Szegedy et al. 2016, section 7: (1 - e) H(label, p) + e H(uniform, p).
  double expected = 0;
  for (uint32_t c = 0; c < 3; ++c) {
    Batch uniform = batch;
    std::fill(uniform.labels.begin(), uniform.labels.end(), static_cast<float>(c));
    expected += 0.3 / 3 * *plain->Train(uniform, weights, {}, contribution);
  }
  expected += 0.7 * *plain->Train(batch, weights, {}, contribution);
  CHECK(*smoothed->Train(batch, weights, {}, contribution) == Approx(expected).epsilon(1e-6));
  CHECK(smoothed->Evaluate(batch, weights)->loss_sum == plain->Evaluate(batch, weights)->loss_sum);
}

TEST_CASE("a label counts among the top five by its rank, the first of equals before") {
  auto backend = TestBackend();
  auto model =
      BuildModel("layers { dense { units: 11 bias: false } } loss: LOSS_SOFTMAX_CROSS_ENTROPY",
                 {1, 1, 1}, 11, *backend);
  CHECK(model->tells_top5());
  const std::vector<float> weights = {1, 5, 3, 3, 2, 3, 3, 0, 0, 0, 0};
  const auto in_top5 = [&](float label) {
    return model->Evaluate({1, {1}, {label}}, weights)->in_top5 == 1;
  };
  CHECK(in_top5(1));
  CHECK(in_top5(6));
  CHECK_FALSE(in_top5(4));
  CHECK_FALSE(in_top5(7));
}

TEST_CASE("bad models of tokens are refused with what to do") {
  auto backend = TestBackend();
  const auto error = [&](const std::string& text) {
    return std::string(Build(text, *backend).status().message());
  };
  CHECK(error("layers { embedding { vocabulary: 7 width: 4 } } layers { dense { units: 7 } }") ==
        "model.loss: an example has 5 labels, one for each position, but the last layer computes 1 "
        "x 1 x 7: end the layers with tied_dense, or with dense and pointwise: true");
  CHECK(error("layers { embedding { vocabulary: 7 width: 6 } } "
              "layers { attention { heads: 4 } }") ==
        "model.layers.1: attention 'attention_1': heads 4 must divide the 6 channels");
  CHECK(error("layers { embedding { vocabulary: 7 width: 6 } } "
              "layers { attention { heads: 2 rotary: true } }") ==
        "model.layers.1: attention 'attention_1': rotary rotates pairs of channels, but a head has "
        "3, which is odd: change heads or the width");
  CHECK(error("layers { relu {} } layers { embedding { vocabulary: 7 width: 4 } }") ==
        "model.layers.1: embedding 'embedding_1': reads the data's tokens, so it must be the "
        "model's first layer");
  CHECK(error("layers { embedding { vocabulary: 7 width: 4 } } "
              "layers { tied_dense { embedding: \"e\" } }") ==
        "model.layers.1: tied_dense 'tied_dense_1': embedding: no earlier embedding has the name "
        "'e'");
  CHECK(error("layers { name: \"e\" embedding { vocabulary: 7 width: 4 } } "
              "layers { dense { units: 3 pointwise: true } } "
              "layers { tied_dense { embedding: \"e\" } }") ==
        "model.layers.2: tied_dense 'tied_dense_2': the input has 3 channels, but each row of the "
        "embedding has 4 values: put a pointwise dense layer with 4 units before this layer");
  CHECK(error("layers { gpt { vocabulary: 5 layers: 1 width: 4 heads: 2 } }") ==
        "model.loss: the last layer computes 5 scores, but the data has 7 classes");
}

TEST_CASE("what is no token is refused before anything is computed") {
  auto backend = TestBackend();
  auto model = Built("layers { gpt { vocabulary: 7 layers: 1 width: 4 heads: 2 } }", *backend);
  const std::vector<float> weights = InitialWeights(*model, 1);
  std::vector<float> contribution(weights.size(), 5.0f);
  Batch batch = TokenBatch(2, kContext, kVocabulary, 1);
  batch.features[6] = GENERATE(7.0f, -1.0f, 0.5f, std::nanf(""), 1e30f);
  const auto status = model->Train(batch, weights, {}, contribution).status();
  CHECK(absl::IsInvalidArgument(status));
  CHECK(std::string(status.message()).find("value 1 of example 1 of the batch is ") == 0);
  CHECK(contribution == std::vector<float>(weights.size(), 5.0f));
}

TEST_CASE("a factorization machine's score is the sum over pairs of features") {
  auto backend = TestBackend();
  v1::Model config =
      ParseModel("layers { factorization_machine { factors: 3 } } loss: LOSS_SQUARED");
  ExpandNamedModels(config);
  auto model = Model::Build(config, {1, 1, 4}, 0, *backend);
  REQUIRE(model.ok());
  const std::vector<float> weights = RandomValues((*model)->schema().total(), 5);
  const std::vector<float> x = RandomValues(4, 6);
  // Rendle 2010, equation 1. The factors come first, then the linear part and its bias.
  REQUIRE(weights.size() == 4 * 3 + 4 + 1);
  double score = weights[16];
  for (size_t i = 0; i < 4; ++i) {
    score += static_cast<double>(weights[12 + i]) * x[i];
    for (size_t j = i + 1; j < 4; ++j) {
      double product = 0;
      for (size_t f = 0; f < 3; ++f)
        product += static_cast<double>(weights[3 * i + f]) * weights[3 * j + f];
      score += product * x[i] * x[j];
    }
  }
  CHECK((*model)->Evaluate({1, x, {0}}, weights)->loss_sum ==
        Approx(score * score / 2).epsilon(1e-4));
}

}  // namespace
}  // namespace leeway::testing::sequence
