#include "worker/model/model.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "config/model/layer_tree.h"
#include "config/model/named_models.h"
#include "tests/worker/model/support.h"
#include "worker/model/graph.h"

namespace leeway::testing::model {
namespace {

constexpr char kSmallCnn[] = R"(
  layers { conv2d { filters: 4 kernel: 3 } } layers { batch_norm {} } layers { relu {} }
  layers { max_pool {} } layers { flatten {} }
  layers { name: "hidden" dense { units: 6 } } layers { tanh {} }
  layers { dense { units: 3 bias: false } }
  loss: LOSS_SOFTMAX_CROSS_ENTROPY)";

std::vector<float> Contribution(Model& model, const Batch& batch, std::span<const float> weights,
                                const Draw& draw = {}) {
  std::vector<float> contribution(model.schema().total(), 7.0f);
  const auto loss = model.Train(batch, weights, draw, contribution);
  INFO(loss.status());
  REQUIRE(loss.ok());
  return contribution;
}

TEST_CASE("the flat vector has trained tensors in layer order, then averaged ones") {
  auto backend = TestBackend();
  auto model = BuildModel(kSmallCnn, {8, 8, 1}, 3, *backend);
  struct Wanted {
    std::string name;
    std::vector<uint64_t> shape;
    uint64_t offset;
    v1::TensorKind kind;
  };
  const auto weight = v1::TENSOR_KIND_WEIGHT, bias = v1::TENSOR_KIND_BIAS,
             norm = v1::TENSOR_KIND_NORM;
  const std::vector<Wanted> wanted = {
      {"conv2d_0/weight", {3, 3, 1, 4}, 0, weight}, {"conv2d_0/bias", {4}, 36, bias},
      {"batch_norm_1/weight", {4}, 40, norm},       {"batch_norm_1/bias", {4}, 44, norm},
      {"hidden/weight", {36, 6}, 48, weight},       {"hidden/bias", {6}, 264, bias},
      {"dense_7/weight", {6, 3}, 270, weight},      {"batch_norm_1/running_mean", {4}, 288, norm},
      {"batch_norm_1/running_var", {4}, 292, norm},
  };
  const v1::ModelSchema& schema = model->schema();
  REQUIRE(schema.tensors_size() == static_cast<int>(wanted.size()));
  for (size_t i = 0; i < wanted.size(); ++i) {
    const v1::TensorSpec& tensor = schema.tensors(static_cast<int>(i));
    CHECK(tensor.name() == wanted[i].name);
    CHECK(std::vector<uint64_t>(tensor.shape().begin(), tensor.shape().end()) == wanted[i].shape);
    CHECK(tensor.offset() == wanted[i].offset);
    CHECK(tensor.kind() == wanted[i].kind);
  }
  CHECK(schema.trained() == 288);
  CHECK(schema.total() == 296);
}

TEST_CASE("a tensor's kind is told by its layer, not by its name") {
  auto backend = TestBackend();
  auto model = BuildModel(R"(
      layers { conv2d { filters: 4 kernel: 3 groups: 2 } } layers { group_norm { groups: 2 } }
      layers { layer_norm {} } layers { layer_norm { bias: false } }
      layers { conv2d { filters: 4 kernel: 1 groups: 4 } }
      layers { dense { units: 3 } } loss: LOSS_SOFTMAX_CROSS_ENTROPY)",
                          {8, 8, 2}, 3, *backend);
  std::map<v1::TensorKind, std::vector<std::string>> names;
  for (const v1::TensorSpec& tensor : model->schema().tensors()) {
    names[tensor.kind()].push_back(tensor.name());
  }
  using Names = std::vector<std::string>;
  CHECK(names[v1::TENSOR_KIND_WEIGHT] ==
        Names{"conv2d_0/weight", "conv2d_4/weight", "dense_5/weight"});
  CHECK(names[v1::TENSOR_KIND_BIAS] == Names{"conv2d_0/bias", "conv2d_4/bias", "dense_5/bias"});
  CHECK(names[v1::TENSOR_KIND_NORM] == Names{"group_norm_1/weight", "group_norm_1/bias",
                                             "layer_norm_2/weight", "layer_norm_2/bias",
                                             "layer_norm_3/weight"});
}

TEST_CASE("a model that does not fit together is refused, naming the layer") {
  struct Case {
    std::string layers;
    std::string error;
    ImageShape input = {8, 8, 3};
    uint32_t classes = 10;
    std::string loss = "LOSS_SOFTMAX_CROSS_ENTROPY";
  };
  const std::vector<Case> cases = {
      {"", "model.layers: the list of layers is empty"},
      {"layers {}", "model.layers.0: no layer type is given"},
      {"layers { relu {} } layers { max_pool {} } layers { conv2d { filters: 2 kernel: 7 } }",
       "model.layers.2: conv2d 'conv2d_2': kernel 7 is larger than the 4 x 4 input"},
      {"layers { conv2d { filters: 2 kernel: 12 padding: 1 } }",
       "model.layers.0: conv2d 'conv2d_0': kernel 12 is larger than the 8 x 8 input with its "
       "padding of 1"},
      {"layers { flatten {} } layers { conv2d { filters: 2 kernel: 3 } }",
       "model.layers.1: conv2d 'conv2d_1': kernel 3 is larger than the 1 x 1 input"},
      {"layers { name: \"p\" max_pool { size: 9 } }",
       "model.layers.0: max_pool 'p': window size 9 is larger than the 8 x 8 input"},
      {"layers { avg_pool { size: 0 } }", "size 0 is outside 1 to 1024"},
      {"layers { max_pool { stride: 0 } }", "stride 0 is outside 1 to 1024"},
      {"layers { conv2d { filters: 2 } }", "kernel 0 is outside 1 to 1024"},
      {"layers { conv2d { filters: 2 kernel: 3 padding: 4000000000 } }",
       "padding 4000000000 is outside 0 to 1024"},
      {"layers { dense {} }", "model.layers.0: dense 'dense_0': units 0 is outside 1 to 10000000"},
      {"layers { dropout { rate: 1 } }", "dropout_0': rate 1 is not in [0, 1)"},
      {"layers { dropout { rate: nan } }", "dropout_0': rate nan is not in [0, 1)"},
      {"layers { batch_norm { momentum: 0 } }", "batch_norm_0': momentum 0 and epsilon 1e-05"},
      {"layers { name: \"a/b\" relu {} }", "relu 'a/b': a name has letters, digits"},
      {"layers { name: \"x\" relu {} } layers { name: \"x\" dense { units: 10 } }",
       "model.layers.1: the name 'x' is already used by model.layers.0"},
      {"layers { name: \"relu_1\" relu {} } layers { relu {} }",
       "model.layers.1: the name 'relu_1' is already used by model.layers.0"},
      {"layers { dense { units: 8 } }",
       "model.loss: the last layer computes 8 scores, but the data has 10 classes"},
      {"layers { conv2d { filters: 10 kernel: 3 } }",
       "model.loss: loss softmax_cross_entropy requires one row of scores, but the last layer "
       "computes 6 x 6 x 10"},
      {"layers { dense { units: 8 } }", "requires class numbers as labels", {8, 8, 3}, 0},
      {"layers { dense { units: 2 } }",
       "model.loss: loss logistic requires units 1, but the last layer computes 2 scores",
       {1, 1, 4},
       2,
       "LOSS_LOGISTIC"},
      {"layers { dense { units: 1 } }",
       "loss logistic requires two classes, but the data has 3",
       {1, 1, 4},
       3,
       "LOSS_LOGISTIC"},
      {"layers { dense { units: 3 } }",
       "model.loss: loss squared requires units 1",
       {1, 1, 4},
       0,
       "LOSS_SQUARED"},
      {"layers { flatten {} }", "no layer has weights to train", {1, 1, 10}},
      {"layers { dense { units: 10 } }", "the data's example is empty", {0, 8, 3}},
      {"layers { dense { units: 10 } }",
       "the data's example of 4000000000 x 4000000000 x 4000000000 is more than",
       {4000000000, 4000000000, 4000000000}},
      {"layers { conv2d { filters: 65536 kernel: 1 padding: 1024 } }",
       "conv2d_0': an output of 2056 x 2056 x 65536 is more than the limit"},
      {"layers { conv2d { filters: 60000 kernel: 1000 padding: 1000 stride: 1024 } }",
       "a weight of 1000 x 1000 x 3 x 60000 is more than the 4294967296 elements"},
      {"layers { dense { units: 10000000 } } layers { dense { units: 1000 } }",
       "model.layers.1: with dense_1/weight the model has"},
  };
  auto backend = TestBackend();
  for (const Case& one : cases) {
    CAPTURE(one.layers);
    const auto model = Model::Build(ParseModel(one.layers + " loss: " + one.loss), one.input,
                                    one.classes, *backend);
    REQUIRE_FALSE(model.ok());
    CHECK(model.status().code() == absl::StatusCode::kInvalidArgument);
    CHECK_THAT(std::string(model.status().message()), Catch::Contains(one.error));
  }
}

TEST_CASE("a batch too large for memory is refused") {
  auto backend = TestBackend();
  auto model = BuildModel("layers { dense { units: 10000000 } } loss: LOSS_SOFTMAX_CROSS_ENTROPY",
                          {1, 1, 1}, 2, *backend);
  const auto weights = std::vector<float>(model->schema().total());
  std::vector<float> contribution(weights.size());
  const Batch batch = RandomBatch(2000, 1, 2, 1);
  const auto loss = model->Train(batch, weights, {}, contribution);
  CHECK(loss.status().code() == absl::StatusCode::kResourceExhausted);
}

TEST_CASE("initial weights have the initialiser's spread and depend on the seed alone") {
  auto backend = TestBackend();
  const auto spread = [&](const std::string& initializer) {
    auto model = BuildModel("layers { dense { units: 200 initializer: INITIALIZER_" + initializer +
                                " } } loss: LOSS_SOFTMAX_CROSS_ENTROPY",
                            {1, 1, 300}, 10, *backend);
    const std::vector<float> weights = InitialWeights(*model, 5);
    CHECK(weights == InitialWeights(*model, 5));
    if (initializer != "ZEROS") CHECK(weights != InitialWeights(*model, 6));
    double squares = 0;
    double sum = 0;
    for (size_t i = 0; i < 60000; ++i) {
      sum += weights[i];
      squares += static_cast<double>(weights[i]) * weights[i];
    }
    CHECK(std::abs(sum / 60000) < 0.002);
    CHECK(std::count(weights.begin() + 60000, weights.end(), 0.0f) == 200);
    return squares / 60000;
  };
  CHECK(spread("HE_NORMAL") == Approx(2.0 / 300).epsilon(0.03));
  CHECK(spread("LECUN_NORMAL") == Approx(1.0 / 300).epsilon(0.03));
  // The variance of a uniform distribution is a third of the square of its bound.
  CHECK(spread("GLOROT_UNIFORM") == Approx(6.0 / 500 / 3).epsilon(0.03));
  CHECK(spread("ZEROS") == 0);

  auto model = BuildModel(kSmallCnn, {8, 8, 1}, 3, *backend);
  const std::vector<float> weights = InitialWeights(*model, 5);
  CHECK(weights[40] == 1);   // batch norm's weight
  CHECK(weights[44] == 0);   // its bias
  CHECK(weights[288] == 0);  // running mean
  CHECK(weights[292] == 1);  // running variance
}

TEST_CASE("every tensor has initial values of its own") {
  auto backend = TestBackend();
  auto model = BuildModel(
      R"(layers { dense { units: 4 bias: false } } layers { dense { units: 4 bias: false } }
                             loss: LOSS_SOFTMAX_CROSS_ENTROPY)",
      {1, 1, 4}, 2, *backend);
  const std::vector<float> weights = InitialWeights(*model, 5);
  CHECK_FALSE(std::equal(weights.begin(), weights.begin() + 16, weights.begin() + 16));
}

// Compares the whole model's gradient with central differences, for every trained weight.
void CheckModelGradient(const std::string& text, const ImageShape& input, uint32_t classes) {
  CAPTURE(text);
  auto backend = TestBackend();
  auto model = BuildModel(text, input, classes, *backend);
  const Batch batch = RandomBatch(5, input.elements(), std::max(classes, 2u), 3);
  std::vector<float> weights = InitialWeights(*model, 1);
  const Draw draw{7, 8, 9};
  const std::vector<float> all = Contribution(*model, batch, weights, draw);
  const std::vector<float> gradient(all.begin(), all.begin() + model->schema().trained());
  std::vector<double> slopes;
  std::vector<float> ignored(weights.size());
  const float step = 1.0f / 128;
  for (size_t i = 0; i < gradient.size(); ++i) {
    const float kept = weights[i];
    weights[i] = kept + step;
    const float up = weights[i];
    const double above = *model->Train(batch, weights, draw, ignored);
    weights[i] = kept - step;
    const double below = *model->Train(batch, weights, draw, ignored);
    slopes.push_back((above - below) / (static_cast<double>(up) - weights[i]) / 5);
    weights[i] = kept;
  }
  CHECK(Norm(slopes) > 0.01);
  CHECK(RelativeError(gradient, slopes) < 2e-3);
}

TEST_CASE("a whole model's gradient is its loss's slope, for every loss") {
  const std::string body = "layers { dense { units: 6 } } layers { tanh {} } ";
  CheckModelGradient(body + "layers { dense { units: 3 } } loss: LOSS_SOFTMAX_CROSS_ENTROPY",
                     {1, 1, 4}, 3);
  CheckModelGradient(body + "layers { dense { units: 1 } } loss: LOSS_LOGISTIC", {1, 1, 4}, 2);
  CheckModelGradient(body + "layers { dense { units: 1 } } loss: LOSS_SQUARED", {1, 1, 4}, 0);
}

TEST_CASE("layers that share memory do not spoil what others read") {
  // Three conditions at once. tanh reads its output in backward, so dropout may not overwrite it,
  // not even past a flatten. A dropout that is first in the model may not overwrite the batch.
  // Untrained layers come before the first trained one.
  CheckModelGradient(R"(
    layers { dropout { rate: 0.2 } } layers { tanh {} } layers { avg_pool {} }
    layers { conv2d { filters: 3 kernel: 2 } } layers { tanh {} } layers { flatten {} }
    layers { dropout { rate: 0.4 } } layers { tanh {} } layers { dropout { rate: 0.1 } }
    layers { dense { units: 5 } } layers { dropout { rate: 0.3 } } layers { gelu {} }
    layers { dense { units: 4 } } layers { batch_norm {} } layers { tanh {} }
    layers { flatten {} } layers { dense { units: 3 } }
    loss: LOSS_SOFTMAX_CROSS_ENTROPY)",
                     {6, 8, 2}, 3);
  CheckModelGradient(R"(
    layers { flatten {} } layers { batch_norm {} } layers { dense { units: 3 } }
    layers { flatten {} } loss: LOSS_SOFTMAX_CROSS_ENTROPY)",
                     {2, 2, 2}, 3);
}

TEST_CASE("training leaves the batch and the weights as they are") {
  auto backend = TestBackend();
  auto model = BuildModel("layers { relu {} } " + std::string(kSmallCnn), {8, 8, 1}, 3, *backend);
  const Batch batch = RandomBatch(6, 64, 3, 1);
  const std::vector<float> features = batch.features;
  const std::vector<float> weights = InitialWeights(*model, 1);
  const std::vector<float> kept = weights;
  Contribution(*model, batch, weights);
  CHECK(batch.features == features);
  CHECK(weights == kept);
}

TEST_CASE("halves of a batch add up to the whole") {
  auto backend = TestBackend();
  auto model = BuildModel(R"(
    layers { conv2d { filters: 4 kernel: 3 } } layers { relu {} } layers { max_pool {} }
    layers { dense { units: 16 } } layers { relu {} } layers { dense { units: 3 } }
    loss: LOSS_SOFTMAX_CROSS_ENTROPY)",
                          {8, 8, 1}, 3, *backend);
  const Batch batch = RandomBatch(32, 64, 3, 1);
  const std::vector<float> weights = InitialWeights(*model, 1);
  const std::vector<float> whole = Contribution(*model, batch, weights);
  const std::vector<float> first = Contribution(*model, Part(batch, 0, 16), weights);
  const std::vector<float> second = Contribution(*model, Part(batch, 16, 32), weights);
  std::vector<float> mean(whole.size());
  for (size_t i = 0; i < mean.size(); ++i) mean[i] = (first[i] + second[i]) / 2;
  CHECK(RelativeError(mean, whole) < 1e-5);
}

TEST_CASE("an empty batch contributes nothing") {
  auto backend = TestBackend();
  auto model = BuildModel(kSmallCnn, {8, 8, 1}, 3, *backend);
  const std::vector<float> weights = InitialWeights(*model, 1);
  std::vector<float> contribution(weights.size(), 7.0f);
  const auto loss = model->Train(Batch{}, weights, {}, contribution);
  REQUIRE(loss.ok());
  CHECK(*loss == 0);
  CHECK(contribution == std::vector<float>(weights.size(), 0.0f));
  const auto evaluation = model->Evaluate(Batch{}, weights);
  REQUIRE(evaluation.ok());
  CHECK(evaluation->examples == 0);
}

TEST_CASE("labels and sizes that do not fit are errors, and nothing is written") {
  auto backend = TestBackend();
  const auto refuse = [&](const std::string& loss, int units, float label,
                          const std::string& error) {
    auto model =
        BuildModel("layers { dense { units: " + std::to_string(units) + " } } loss: LOSS_" + loss,
                   {1, 1, 4}, 2, *backend);
    Batch batch = RandomBatch(5, 4, 2, 1);
    batch.labels[3] = label;
    const std::vector<float> weights = InitialWeights(*model, 1);
    std::vector<float> contribution(weights.size(), 7.0f);
    const auto trained = model->Train(batch, weights, {}, contribution);
    CHECK(trained.status().code() == absl::StatusCode::kInvalidArgument);
    CHECK_THAT(std::string(trained.status().message()), Catch::Contains(error));
    CHECK(contribution == std::vector<float>(weights.size(), 7.0f));
    CHECK(model->Evaluate(batch, weights).status() == trained.status());
  };
  refuse("SOFTMAX_CROSS_ENTROPY", 3, 3,
         "label 3 of example 3 of the batch is not a class from 0 to 2");
  refuse("SOFTMAX_CROSS_ENTROPY", 3, -1, "label -1 of example 3");
  refuse("SOFTMAX_CROSS_ENTROPY", 3, 0.5, "label 0.5 of example 3");
  refuse("SOFTMAX_CROSS_ENTROPY", 3, NAN, "label nan of example 3");
  refuse("LOGISTIC", 1, 2, "label 2 of example 3 of the batch is not 0, 1 or -1");
  refuse("SQUARED", 1, INFINITY, "label inf of example 3 of the batch is not a finite number");

  auto model = BuildModel(kSmallCnn, {8, 8, 1}, 3, *backend);
  const std::vector<float> weights = InitialWeights(*model, 1);
  std::vector<float> contribution(weights.size());
  Batch batch = RandomBatch(2, 64, 3, 1);
  const std::span<const float> few(weights.data(), 5);
  CHECK_THAT(std::string(model->Train(batch, few, {}, contribution).status().message()),
             Catch::Contains("has 296 weights, but the caller supplied 5"));
  CHECK_FALSE(model->Train(batch, weights, {}, std::span(contribution).first(9)).ok());
  batch.features.pop_back();
  CHECK_THAT(std::string(model->Train(batch, weights, {}, contribution).status().message()),
             Catch::Contains("a batch of 2 examples of 64 features has 127 features"));
}

TEST_CASE("a large batch is evaluated in slices that add up") {
  auto backend = TestBackend();
  auto model = BuildModel(kSmallCnn, {8, 8, 1}, 3, *backend);
  const std::vector<float> weights = InitialWeights(*model, 1);
  const Batch batch = RandomBatch(600, 64, 3, 1);
  const auto whole = model->Evaluate(batch, weights);
  REQUIRE(whole.ok());
  Model::Evaluation sum;
  for (size_t i = 0; i < 600; i += 40) {
    const auto part = model->Evaluate(Part(batch, i, i + 40), weights);
    REQUIRE(part.ok());
    sum.loss_sum += part->loss_sum;
    sum.correct += part->correct;
  }
  CHECK(whole->examples == 600);
  CHECK(whole->correct == sum.correct);
  CHECK(whole->loss_sum == Approx(sum.loss_sum).epsilon(1e-5));
}

TEST_CASE("operations are counted as two for each multiplication of the matrix products") {
  auto backend = TestBackend();
  auto model = BuildModel(R"(layers { conv2d { filters: 16 kernel: 5 } } layers { relu {} }
                             layers { dense { units: 10 } } loss: LOSS_SOFTMAX_CROSS_ENTROPY)",
                          {28, 28, 1}, 10, *backend);
  const double conv = 2.0 * 24 * 24 * 16 * 25;
  const double dense = 2.0 * 24 * 24 * 16 * 10;
  CHECK(model->flops().forward == conv + dense);
  CHECK(model->flops().backward == conv + 2 * dense);
}

TEST_CASE("every layer type of the job's schema is registered") {
  const auto* layer = v1::Layer::descriptor()->FindOneofByName("layer");
  REQUIRE(layer != nullptr);
  for (int i = 0; i < layer->field_count(); ++i) {
    v1::Model model;
    v1::Layer& config = *model.add_layers();
    config.GetReflection()->MutableMessage(&config, layer->field(i));
    CAPTURE(layer->field(i)->name());
    CHECK(LayerType(config) == layer->field(i)->name());
    ExpandNamedModels(model);
    CHECK(MakeGraph(model, {8, 8, 1}).status().code() != absl::StatusCode::kUnimplemented);
  }
}

}  // namespace
}  // namespace leeway::testing::model
