// Small models learn; batch norm's running statistics and dropout's masks are right.
#include <algorithm>
#include <cmath>

#include "tests/worker/model/support.h"

namespace leeway::testing::training {
namespace {

// Plain gradient descent. Averaged values move towards the batch's, as on the servers.
void Descend(Model& model, const Batch& batch, double rate, int steps,
             std::vector<float>& weights) {
  std::vector<float> contribution(weights.size());
  const size_t trained = model.schema().trained();
  for (int step = 0; step < steps; ++step) {
    REQUIRE(model.Train(batch, weights, {1, static_cast<uint64_t>(step), 0}, contribution).ok());
    for (size_t i = 0; i < trained; ++i) {
      weights[i] -= static_cast<float>(rate) * contribution[i];
    }
    for (const v1::TensorSpec& tensor : model.schema().tensors()) {
      if (tensor.offset() < trained) continue;
      const auto momentum = static_cast<float>(tensor.momentum());
      for (uint64_t i = tensor.offset(); i < tensor.offset() + tensor.shape(0); ++i) {
        weights[i] += momentum * (contribution[i] - weights[i]);
      }
    }
  }
}

TEST_CASE("a small model learns XOR, by every activation and both classification losses") {
  const std::string activation = GENERATE("relu", "gelu", "tanh");
  const bool logistic = GENERATE(false, true);
  auto backend = TestBackend();
  const std::string text = "layers { dense { units: 16 } } layers { " + activation +
                           " {} } layers { dense { units: " + (logistic ? "1" : "2") +
                           " } } loss: LOSS_" + (logistic ? "LOGISTIC" : "SOFTMAX_CROSS_ENTROPY");
  auto model = BuildModel(text, {1, 1, 2}, 2, *backend);
  const Batch batch{4, {-1, -1, -1, 1, 1, -1, 1, 1}, {0, 1, 1, 0}};
  std::vector<float> weights = InitialWeights(*model, 3);
  Descend(*model, batch, 0.5, 300, weights);
  const auto evaluation = model->Evaluate(batch, weights);
  REQUIRE(evaluation.ok());
  CHECK(evaluation->correct == 4);
  CHECK(evaluation->loss_sum / 4 < 0.05);
}

// Noisy images with a bright spot in one of four quarters.
Batch Spots(size_t size, uint64_t seed) {
  Batch batch{size, RandomValues(size * 100, seed, 0.3), std::vector<float>(size)};
  RandomStream stream(seed, RandomPurpose::kShuffle);
  for (size_t i = 0; i < size; ++i) {
    const size_t quarter = stream.Below(4);
    const size_t row = quarter / 2 * 5 + stream.Below(4);
    const size_t column = quarter % 2 * 5 + stream.Below(4);
    for (size_t at : {0, 1, 10, 11}) batch.features[i * 100 + row * 10 + column + at] += 2;
    batch.labels[i] = static_cast<float>(quarter);
  }
  return batch;
}

TEST_CASE("a convolutional model with everything in it learns, and is evaluated on unseen images") {
  auto backend = TestBackend(GENERATE(1u, 2u));
  auto model = BuildModel(R"(
    layers { conv2d { filters: 8 kernel: 3 padding: 1 } } layers { batch_norm {} }
    layers { relu {} } layers { max_pool {} } layers { conv2d { filters: 8 kernel: 2 } }
    layers { gelu {} } layers { avg_pool {} } layers { flatten {} } layers { dropout { rate: 0.1 } }
    layers { dense { units: 4 } } loss: LOSS_SOFTMAX_CROSS_ENTROPY)",
                          {10, 10, 1}, 4, *backend);
  std::vector<float> weights = InitialWeights(*model, 1);
  Descend(*model, Spots(256, 1), 0.3, 120, weights);
  const auto evaluation = model->Evaluate(Spots(200, 2), weights);
  REQUIRE(evaluation.ok());
  CHECK(evaluation->correct >= 190);
}

TEST_CASE("a squared loss fits a line") {
  auto backend = TestBackend();
  auto model =
      BuildModel("layers { dense { units: 1 } } loss: LOSS_SQUARED", {1, 1, 1}, 0, *backend);
  const Batch batch{4, {0, 1, 2, 3}, {1, 3, 5, 7}};
  std::vector<float> weights = InitialWeights(*model, 3);
  Descend(*model, batch, 0.2, 500, weights);
  CHECK(weights[0] == Approx(2).margin(1e-3));
  CHECK(weights[1] == Approx(1).margin(1e-3));
}

TEST_CASE("batch norm's running statistics move to the batch's by the momentum, unbiased") {
  auto backend = TestBackend();
  auto model = BuildModel(R"(layers { batch_norm { momentum: 0.25 } } layers { dense { units: 2 } }
                             loss: LOSS_SOFTMAX_CROSS_ENTROPY)",
                          {1, 1, 1}, 2, *backend);
  const Batch batch{4, {1, 2, 3, 6}, {0, 1, 0, 1}};
  std::vector<float> weights = InitialWeights(*model, 1);
  const size_t mean = model->schema().trained();
  REQUIRE(model->schema().total() == mean + 2);
  Descend(*model, batch, 0, 1, weights);
  // The mean is 3; the sum of squares about it is 14, which gives 14 / 3 unbiased.
  CHECK(weights[mean] == Approx(0.25 * 3));
  CHECK(weights[mean + 1] == Approx(0.75 + 0.25 * 14 / 3));
  Descend(*model, batch, 0, 200, weights);
  CHECK(weights[mean] == Approx(3));
  CHECK(weights[mean + 1] == Approx(14.0 / 3));

  // Evaluation uses the running statistics: other examples in the batch do not matter.
  const auto alone = model->Evaluate(Part(batch, 0, 1), weights);
  const auto other = model->Evaluate(Batch{1, {2}, {1}}, weights);
  const auto both = model->Evaluate(Part(batch, 0, 2), weights);
  REQUIRE(both.ok());
  CHECK(both->loss_sum == Approx(alone->loss_sum + other->loss_sum));
}

TEST_CASE("one example has no variance: batch norm keeps finite") {
  auto backend = TestBackend();
  auto model = BuildModel(R"(layers { batch_norm {} } layers { dense { units: 2 } }
                             loss: LOSS_SOFTMAX_CROSS_ENTROPY)",
                          {1, 1, 3}, 2, *backend);
  std::vector<float> weights = InitialWeights(*model, 1);
  Descend(*model, RandomBatch(1, 3, 2, 1), 0.1, 3, weights);
  CHECK(std::all_of(weights.begin(), weights.end(), [](float w) { return std::isfinite(w); }));
}

// Returns the scaled values that dropout lets through, which the gradient of a linear model's
// weights shows.
std::vector<float> Mask(const Draw& draw, const std::string& layers, size_t size = 4000) {
  auto backend = TestBackend();
  auto model = BuildModel(
      layers + " layers { dense { units: 1 initializer: INITIALIZER_ZEROS } } loss: LOSS_SQUARED",
      {1, 1, static_cast<uint32_t>(size)}, 0, *backend);
  const Batch batch{1, std::vector<float>(size, 1.0f), {-1}};
  std::vector<float> contribution(model->schema().total());
  REQUIRE(model->Train(batch, InitialWeights(*model, 1), draw, contribution).ok());
  contribution.pop_back();
  return contribution;
}

TEST_CASE(
    "dropout drops its share, scales the rest, and is a function of seed, step, rank and layer") {
  const std::string layer = "layers { dropout { rate: 0.3 } }";
  const std::vector<float> mask = Mask({1, 2, 3}, layer);
  const auto dropped = std::count(mask.begin(), mask.end(), 0.0f);
  // Within six standard deviations.
  CHECK(std::abs(dropped - 1200.0) < 6 * std::sqrt(4000 * 0.3 * 0.7));
  CHECK(std::count(mask.begin(), mask.end(), 1.0f / (1.0f - 0.3f)) == 4000 - dropped);
  CHECK(Mask({1, 2, 3}, layer) == mask);
  CHECK(Mask({2, 2, 3}, layer) != mask);
  CHECK(Mask({1, 3, 3}, layer) != mask);
  CHECK(Mask({1, 2, 4}, layer) != mask);
  CHECK(Mask({1, 2, 3}, "layers { flatten {} } " + layer) != mask);
  CHECK(Mask({1, 2, 3}, "layers { dropout { rate: 0 } }") == std::vector<float>(4000, 1.0f));
}

TEST_CASE("evaluation drops nothing") {
  auto backend = TestBackend();
  auto model = BuildModel(R"(layers { dropout { rate: 0.9 } } layers { dense { units: 1 } }
                             loss: LOSS_SQUARED)",
                          {1, 1, 50}, 0, *backend);
  const std::vector<float> weights(51, 1.0f);
  const auto evaluation = model->Evaluate(Batch{1, std::vector<float>(50, 1.0f), {51}}, weights);
  REQUIRE(evaluation.ok());
  CHECK(evaluation->loss_sum == 0);
}

}  // namespace
}  // namespace leeway::testing::training
