// Models with a plugin's layers and loss: what they compute, and how their faults are handled.
#include "tests/common/plugins/support.h"
#include "tests/worker/device/fake_device.h"
#include "tests/worker/model/support.h"

namespace leeway::testing::custom_model {
namespace {

std::string Plugin(const std::string& name) { return "plugins: '" + PluginFile(name) + "' "; }

const std::string kDense = "layers { dense { units: 3 } } ";
const std::string kSoftmax = " loss: LOSS_SOFTMAX_CROSS_ENTROPY";

// The text of a layer of the hostile plugin, with this fault.
std::string Scale(int fault) {
  return "layers { custom { name: 'scale' options { key: 'fault' value: " + std::to_string(fault) +
         " } } } ";
}

std::string Plain(int fault) {
  return " loss: LOSS_CUSTOM custom_loss { name: 'plain' options { key: 'fault' value: " +
         std::to_string(fault) + " } }";
}

absl::Status BuildStatus(const std::string& text, const ImageShape& input = {1, 1, 4},
                         uint32_t classes = 3) {
  const auto backend = TestBackend();
  return Model::Build(ParseModel(text), input, classes, *backend).status();
}

TEST_CASE("a plugin's layer trains within a model, and has a place in its schema") {
  const auto backend = TestBackend();
  const auto model =
      BuildModel(Plugin("example") + kDense +
                     "layers { custom { name: 'swish' } } layers { dense { units: 2 } }" + kSoftmax,
                 {1, 1, 4}, 2, *backend);
  REQUIRE(model->schema().tensors(2).name() == "custom_1/beta");
  CHECK(model->schema().tensors(2).kind() == v1::TENSOR_KIND_BIAS);
  std::vector<float> weights = InitialWeights(*model, 5);
  CHECK(weights[model->schema().tensors(2).offset()] == 1);
  const Batch batch = RandomBatch(20, 4, 2, 3);
  std::vector<float> gradient(weights.size());
  const double before = model->Evaluate(batch, weights)->loss_sum;
  for (int step = 0; step < 100; ++step) {
    REQUIRE(model->Train(batch, weights, {}, gradient).ok());
    for (size_t i = 0; i < weights.size(); ++i) weights[i] -= 0.5f * gradient[i];
  }
  CHECK(gradient[model->schema().tensors(2).offset()] != 0);
  CHECK(model->Evaluate(batch, weights)->loss_sum < 0.5 * before);
}

TEST_CASE("a plugin's loss of classes counts what is right, and one of numbers tells its error") {
  const auto backend = TestBackend();
  const auto classes =
      BuildModel(Plugin("hostile") +
                     "layers { dense { units: 12 initializer: INITIALIZER_ZEROS } }" + Plain(0),
                 {1, 1, 4}, 12, *backend);
  Batch batch = RandomBatch(6, 4, 2, 3);
  // All scores are equal: the first five come before the others.
  batch.labels = {0, 0, 1, 4, 5, 11};
  const auto evaluation = classes->Evaluate(batch, InitialWeights(*classes, 1));
  CHECK(evaluation->correct == 2);
  CHECK(evaluation->in_top5 == 4);
  batch.labels[3] = 12;
  CHECK_THAT(std::string(classes->Evaluate(batch, InitialWeights(*classes, 1)).status().message()),
             Catch::Contains("label 12 of example 3 of the batch is not a class from 0 to 11"));
  const auto numbers =
      BuildModel(Plugin("example") +
                     "layers { dense { units: 1 initializer: INITIALIZER_ZEROS } } loss: "
                     "LOSS_CUSTOM custom_loss { name: 'huber' }",
                 {1, 1, 4}, 0, *backend);
  batch.labels = {3, -3, 3, -3, 3, -3};
  const auto regression = numbers->Evaluate(batch, InitialWeights(*numbers, 1));
  CHECK(regression->loss_sum == 6 * 2.5);
  CHECK(*regression->error.mae() == 3);
}

TEST_CASE("a layer or a loss that cannot be made is an error with its key, the layer, the plugin") {
  const std::string hostile = Plugin("hostile");
  const std::pair<std::string, std::vector<std::string>> table[] = {
      {hostile + kDense + Scale(1) + kSoftmax,
       {"model.layers.1.custom: custom 'custom_1': the plugin's layer 'scale': this does not fit"}},
      {hostile + kDense + Scale(2) + kSoftmax, {"model.layers.1.custom: ", "returned no layer"}},
      {hostile + kDense + Scale(6) + kSoftmax, {"its tensor 0 'w' has a shape that is empty"}},
      {hostile + kDense + Scale(7) + kSoftmax,
       {"its tensor 0 'w' has a shape that is empty or too"}},
      {hostile + kDense + Scale(8) + kSoftmax, {"its tensor 0 'a/b' needs a name of letters"}},
      {hostile + kDense + Scale(9) + kSoftmax,
       {"its tensor 1 'w' has the same name as another tensor"}},
      {hostile + kDense + Scale(10) + kSoftmax,
       {"model.layers.1: custom 'custom_1': an output is"}},
      {hostile + kDense + "layers { custom { name: 'skale' } }" + kSoftmax,
       {"model.layers.1.custom.name: custom 'custom_1': the job's plugins have no layer 'skale'; "
        "did you mean 'scale'?"}},
      {hostile + kDense + "layers { custom { name: 'scale' options { key: 'falt' value: 1 } } }" +
           kSoftmax,
       {"model.layers.1.custom.options.falt: custom 'custom_1': unknown option; did you mean"}},
      {hostile + kDense + Plain(1),
       {"model.custom_loss.name: the plugin's loss 'plain': this does not fit"}},
      {hostile + kDense + Plain(2), {"model.custom_loss.name: ", "returned no loss"}},
      {hostile + "layers { dense { units: 2 } }" + Plain(0),
       {"the last layer computes 2 scores, but the data has 3 classes"}},
      {Plugin("example") + kDense + " loss: LOSS_CUSTOM custom_loss { name: 'huber' }",
       {"model.loss: loss 'huber' requires units 1, but the last layer computes 3 scores"}},
  };
  for (const auto& [text, words] : table) {
    const absl::Status status = BuildStatus(text);
    INFO(text << "\n" << status);
    CHECK_FALSE(status.ok());
    CHECK(HasWords(status.message(), words));
  }
}

TEST_CASE("what a plugin throws while it computes ends the batch with the layer's name") {
  const auto backend = TestBackend();
  const std::pair<std::string, std::string> table[] = {
      {kDense + Scale(3) + kSoftmax,
       "layer 'custom_1': the plugin's layer 'scale', forward pass: forward is broken"},
      {kDense + Scale(4) + kSoftmax,
       "layer 'custom_1': the plugin's layer 'scale', backward pass: backward is broken"},
      {kDense + Scale(5) + kSoftmax,
       "layer 'custom_1': the plugin's layer 'scale', forward pass: the plugin threw an object "
       "that is not a std::exception, so the reason is unknown"},
      {kDense + Plain(3), "the plugin's loss 'plain': the loss is broken"},
  };
  for (const auto& [text, error] : table) {
    const auto model = BuildModel(Plugin("hostile") + text, {1, 1, 4}, 3, *backend);
    const std::vector<float> weights = InitialWeights(*model, 1);
    std::vector<float> gradient(weights.size());
    const auto loss = model->Train(RandomBatch(5, 4, 3, 1), weights, {}, gradient);
    // The same batch would fail again.
    CHECK(absl::IsInvalidArgument(loss.status()));
    CHECK(std::string(loss.status().message()) == error);
  }
  // The next batch starts afresh: this layer fails in training only.
  const auto model =
      BuildModel(Plugin("hostile") + kDense + Scale(3) + kSoftmax, {1, 1, 4}, 3, *backend);
  std::vector<float> weights = InitialWeights(*model, 1), gradient(weights.size());
  CHECK_FALSE(model->Train(RandomBatch(5, 4, 3, 1), weights, {}, gradient).ok());
  CHECK(model->Evaluate(RandomBatch(5, 4, 3, 1), weights).ok());
}

TEST_CASE("on a device with memory of its own a plugin's layer or loss is refused") {
  const auto device = FakeDevice::Make({});
  REQUIRE(device.ok());
  const auto refused = [&](const std::string& text) {
    return std::string(Model::Build(ParseModel(text), {1, 1, 4}, 3, **device).status().message());
  };
  CHECK(refused(Plugin("hostile") + kDense + Scale(0) + kSoftmax) ==
        "model.layers.1: layer 'custom_1': layers of plugins compute on the CPU: set "
        "workers.device: cpu");
  CHECK(refused(Plugin("hostile") + kDense + Plain(0)) ==
        "model.custom_loss: losses of plugins compute on the CPU: set workers.device: cpu");
}

}  // namespace
}  // namespace leeway::testing::custom_model
