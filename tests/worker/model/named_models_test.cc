// Named models have the sizes of the papers' and of torchvision's models.
#include "config/model/named_models.h"

#include <algorithm>

#include "tests/worker/model/support.h"

namespace leeway::testing::named_models {
namespace {

struct Size {
  std::string layer;
  ImageShape input;
  uint32_t classes;
  uint64_t trained;
  // Running means and variances.
  uint64_t averaged;
  int trained_tensors;
  // Millions of multiply-adds in the forward products of one example.
  double mmacs;
  // The labels of an example.
  size_t labels = 1;
};

// Counted by hand from the papers and, where torchvision has the model, by torchvision.
const Size kSizes[] = {
    {"mlp { hidden: 128 hidden: 64 }", {28, 28, 1}, 10, 109'386, 0, 6, 0.109},
    {"lenet {}", {28, 28, 1}, 10, 61'706, 0, 10, 0.42},
    {"resnet20 {}", {32, 32, 3}, 10, 269'722, 1'376, 59, 40.6},
    {"resnet20 { shortcut: SHORTCUT_B }", {32, 32, 3}, 10, 272'474, 1'568, 65, 40.8},
    {"resnet18 {}", {32, 32, 3}, 10, 11'173'962, 9'600, 62, 555},
    {"resnet18 { stem: STEM_IMAGENET classes: 1000 }",
     {224, 224, 3},
     1000,
     11'689'512,
     9'600,
     62,
     1814},
    {"resnet50 {}", {32, 32, 3}, 10, 23'520'842, 53'120, 161, 1298},
    {"mobilenet_v2 {}", {32, 32, 3}, 10, 2'236'682, 34'112, 158, 88},
    {"mobilenet_v2 { stem: STEM_IMAGENET classes: 1000 }",
     {224, 224, 3},
     1000,
     3'504'872,
     34'112,
     158,
     301},
    // The products of the weights as in the literature, 50.9 million, plus those of the attention.
    {"gpt { vocabulary: 65 bias: false }", {64, 1, 1}, 65, 805'248, 0, 36, 50.9 + 4.2, 64},
    {"gpt { vocabulary: 65 }", {64, 1, 1}, 65, 809'856, 0, 52, 50.9 + 4.2, 64},
    // The smallest GPT-2.
    {"gpt { vocabulary: 50257 layers: 12 width: 768 heads: 12 tanh_gelu: true }",
     {1024, 1, 1},
     50257,
     124'439'808,
     0,
     148,
     145'800,
     1024},
    {"logistic {}", {1, 1, 123}, 2, 124, 0, 2, 0.000123},
    {"softmax { classes: 3 }", {1, 1, 4}, 3, 15, 0, 2, 0.000012},
    {"factorization_machine { factors: 5 }", {1, 1, 10}, 2, 61, 0, 3, 0.00011},
};

v1::Model Named(const std::string& layer) {
  v1::Model config = ParseModel("layers { " + layer + " } loss: LOSS_SOFTMAX_CROSS_ENTROPY");
  ExpandNamedModels(config);
  return config;
}

bool HasTensor(const v1::ModelSchema& schema, const std::string& name) {
  return std::any_of(schema.tensors().begin(), schema.tensors().end(),
                     [&](const v1::TensorSpec& tensor) { return tensor.name() == name; });
}

TEST_CASE("models by name have the sizes of the papers'") {
  auto backend = TestBackend();
  for (const Size& size : kSizes) {
    CAPTURE(size.layer);
    v1::Model config = Named(size.layer);
    if (size.classes == 2) config.set_loss(v1::LOSS_LOGISTIC);
    const auto model = Model::Build(config, size.input, size.classes, *backend, size.labels);
    INFO(model.status());
    REQUIRE(model.ok());
    const v1::ModelSchema& schema = (*model)->schema();
    CHECK(schema.trained() == size.trained);
    CHECK(schema.total() - schema.trained() == size.averaged);
    CHECK(std::count_if(schema.tensors().begin(), schema.tensors().end(),
                        [](const v1::TensorSpec& tensor) { return !tensor.has_momentum(); }) ==
          size.trained_tensors);
    CHECK((*model)->flops().forward / 2e6 == Approx(size.mmacs).epsilon(0.01));
  }
}

TEST_CASE("tensors of models by name are called as in torchvision") {
  auto backend = TestBackend();
  const auto schema = [&](const std::string& layer) {
    return (*Model::Build(Named(layer), {32, 32, 3}, 10, *backend))->schema();
  };
  const v1::ModelSchema resnet = schema("resnet18 {}");
  for (const char* name :
       {"conv1/weight", "bn1/running_var", "layer1.0.conv1/weight", "layer2.0.shortcut.0/weight",
        "layer2.0.shortcut.1/bias", "layer4.1.bn2/weight", "fc/bias"}) {
    CAPTURE(name);
    CHECK(HasTensor(resnet, name));
  }
  const v1::ModelSchema mobilenet = schema("mobilenet_v2 {}");
  for (const char* name :
       {"features.0.0/weight", "features.1.conv.0.0/weight", "features.1.conv.1/weight",
        "features.3.conv.0.1/running_mean", "features.17.conv.3/bias", "features.18.1/weight",
        "classifier.1/weight"}) {
    CAPTURE(name);
    CHECK(HasTensor(mobilenet, name));
  }
}

TEST_CASE("a model by name within others is a sequence of its name") {
  const v1::Model config = Named("relu {} } layers { lenet {} } layers { mlp { hidden: 5 }");
  REQUIRE(config.layers_size() == 3);
  CHECK(config.layers(1).name() == "lenet_1");
  CHECK(config.layers(1).sequence().layers_size() == 11);
  CHECK(config.layers(2).name() == "mlp_2");
  const v1::Model nested = Named("repeat { times: 2 layers { residual { layers { mlp {} } } } }");
  CHECK(nested.layers(0).repeat().layers(0).residual().layers(0).has_sequence());
}

TEST_CASE("a model by name keeps a name of its own") {
  const v1::Model config = Named("name: \"bob\" mlp { hidden: 5 }");
  REQUIRE(config.layers_size() == 1);
  CHECK(config.layers(0).name() == "bob");
  CHECK(config.layers(0).sequence().layers_size() == 3);
}

TEST_CASE("zero_init starts each block as its shortcut") {
  auto backend = TestBackend();
  const auto model = Model::Build(Named("resnet20 { zero_init: true }"), {32, 32, 3}, 10, *backend);
  REQUIRE(model.ok());
  std::vector<float> weights((*model)->schema().total());
  (*model)->Initialize(1, weights);
  for (const v1::TensorSpec& tensor : (*model)->schema().tensors()) {
    if (tensor.name() == "layer1.0.bn1/weight") CHECK(weights[tensor.offset()] == 1);
    if (tensor.name() == "layer1.0.bn2/weight") CHECK(weights[tensor.offset()] == 0);
  }
}

}  // namespace
}  // namespace leeway::testing::named_models
