// These tests write PyTorch's files by hand, tensor by tensor, as its documentation describes them.
// In tests/training/model_files.py PyTorch itself writes and reads them.
#include "worker/formats/model_file.h"

#include <map>
#include <numeric>

#include "common/files/safetensors.h"
#include "common/files/safetensors_reader.h"
#include "common/job_key.h"
#include "config/model/named_models.h"
#include "tests/temp_folder.h"
#include "tests/worker/model/support.h"

namespace leeway::testing::model_file {
namespace {

struct Stored {
  std::string name;
  std::vector<uint64_t> shape;
  std::vector<float> values;
};

std::vector<float> Counting(size_t count, float first = 1) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), first);
  return values;
}

Stored Tensor(const std::string& name, std::vector<uint64_t> shape, float first = 1) {
  uint64_t elements = 1;
  for (const uint64_t side : shape) elements *= side;
  return {name, std::move(shape), Counting(elements, first)};
}

class Files {
 public:
  Files(const std::string& layers, const ImageShape& input) {
    config_ = ParseModel(layers + " loss: LOSS_SOFTMAX_CROSS_ENTROPY");
    ExpandNamedModels(config_);
    auto model = Model::Build(config_, input, 1, *backend_);
    INFO(model.status());
    REQUIRE(model.ok());
    model_ = *std::move(model);
  }

  const Model& model() const { return *model_; }
  const v1::Model& config() const { return config_; }
  std::string path() const { return folder_ / "m.safetensors"; }
  const TempFolder& folder() const { return folder_; }

  absl::StatusOr<std::vector<float>> Read(const std::vector<Stored>& tensors) {
    v1::ModelSchema schema;
    std::vector<float> all;
    for (const Stored& tensor : tensors) {
      v1::TensorSpec& spec = *schema.add_tensors();
      spec.set_name(tensor.name);
      spec.mutable_shape()->Add(tensor.shape.begin(), tensor.shape.end());
      spec.set_offset(all.size());
      all.insert(all.end(), tensor.values.begin(), tensor.values.end());
    }
    schema.set_total(all.size());
    REQUIRE(WriteSafetensors(path(), schema, all, {}).ok());
    const auto weights = ReadModelFile(path(), config_, *model_);
    if (!weights.ok()) return weights.status();
    return std::vector<float>(weights->span().begin(), weights->span().end());
  }

  std::string Refusal(const std::vector<Stored>& tensors) {
    const auto read = Read(tensors);
    CHECK(absl::IsInvalidArgument(read.status()));
    CHECK_THAT(std::string(read.status().message()), Catch::Contains(path()));
    return std::string(read.status().message());
  }

  // Returns a tensor of a flat vector that Read returned.
  std::vector<float> Of(const std::vector<float>& weights, const std::string& name) const {
    for (const v1::TensorSpec& tensor : model_->schema().tensors()) {
      if (tensor.name() != name) continue;
      uint64_t elements = 1;
      for (const uint64_t side : tensor.shape()) elements *= side;
      const auto begin = weights.begin() + static_cast<ptrdiff_t>(tensor.offset());
      return {begin, begin + static_cast<ptrdiff_t>(elements)};
    }
    FAIL("no tensor " + name);
    return {};
  }

 private:
  TempFolder folder_;
  std::unique_ptr<Backend> backend_ = TestBackend();
  v1::Model config_;
  std::unique_ptr<Model> model_;
};

const char kSmall[] =
    "layers { name: \"conv1\" conv2d { filters: 2 kernel: 2 bias: false } } layers { name: \"bn1\" "
    "batch_norm {} } layers { name: \"fc\" dense { units: 2 } }";
constexpr ImageShape kSmallInput{3, 3, 2};

std::vector<Stored> SmallInTorch() {
  return {Tensor("conv1.weight", {2, 2, 2, 2}, 100),
          Tensor("bn1.weight", {2}, 10),
          Tensor("bn1.bias", {2}, 20),
          Tensor("bn1.running_mean", {2}, 30),
          Tensor("bn1.running_var", {2}, 40),
          Tensor("fc.weight", {2, 8}, 200),
          Tensor("fc.bias", {2}, 50)};
}

TEST_CASE("PyTorch's tensors come into Leeway's places") {
  Files files(kSmall, kSmallInput);
  const auto weights = files.Read(SmallInTorch());
  INFO(weights.status());
  REQUIRE(weights.ok());
  CHECK(files.Of(*weights, "bn1/running_var") == Counting(2, 40));
  const std::vector<float> conv = files.Of(*weights, "conv1/weight");
  const std::vector<float> dense = files.Of(*weights, "fc/weight");
  for (size_t y = 0; y < 2; ++y) {
    for (size_t x = 0; x < 2; ++x) {
      for (size_t c = 0; c < 2; ++c) {
        for (size_t f = 0; f < 2; ++f) {
          // [filter, channel, row, column]; [unit, features of the image's channels].
          const auto place = static_cast<float>(((f * 2 + c) * 2 + y) * 2 + x);
          CHECK(conv[((y * 2 + x) * 2 + c) * 2 + f] == 100 + place);
          CHECK(dense[((y * 2 + x) * 2 + c) * 2 + f] == 200 + place);
        }
      }
    }
  }
}

TEST_CASE("wrappers and counters of a state_dict are let pass") {
  Files files(kSmall, kSmallInput);
  std::vector<Stored> tensors = SmallInTorch();
  const auto plain = files.Read(tensors);
  for (Stored& tensor : tensors) tensor.name = "module." + tensor.name;
  tensors.push_back({"module.bn1.num_batches_tracked", {}, {7}});
  const auto wrapped = files.Read(tensors);
  INFO(wrapped.status());
  REQUIRE(wrapped.ok());
  CHECK(*wrapped == *plain);
}

TEST_CASE("a file of PyTorch that Leeway writes is read as the same weights") {
  for (const char* layer : {"lenet {}", "mlp { hidden: 5 hidden: 4 }",
                            "resnet20 { shortcut: SHORTCUT_B }", "mobilenet_v2 {}"}) {
    CAPTURE(layer);
    Files files("layers { " + std::string(layer) + " }", {32, 32, 3});
    const std::vector<float> weights = RandomValues(files.model().schema().total(), 1);
    REQUIRE(WriteTorchFile(files.path(), files.config(), files.model(), weights, {}).ok());
    const auto read = ReadModelFile(files.path(), files.config(), files.model());
    INFO(read.status());
    REQUIRE(read.ok());
    CHECK(std::equal(weights.begin(), weights.end(), read->span().begin(), read->span().end()));
  }
}

TEST_CASE("what Leeway exports is read as it is") {
  Files files("layers { lenet {} }", {28, 28, 1});
  const std::vector<float> weights = RandomValues(files.model().schema().total(), 1);
  REQUIRE(WriteSafetensors(files.path(), files.model().schema(), weights, {}).ok());
  const auto read = ReadModelFile(files.path(), files.config(), files.model());
  REQUIRE(read.ok());
  CHECK(std::equal(weights.begin(), weights.end(), read->span().begin(), read->span().end()));
}

TEST_CASE("models of torchvision have torchvision's names and shapes") {
  Files files("layers { resnet18 { stem: STEM_IMAGENET classes: 1000 } }", {224, 224, 3});
  const std::vector<float> weights(files.model().schema().total());
  REQUIRE(WriteTorchFile(files.path(), files.config(), files.model(), weights, {}).ok());
  const auto file = SafetensorsReader::Open(files.path());
  REQUIRE(file.ok());
  const std::map<std::string, std::vector<uint64_t>> wanted = {
      {"conv1.weight", {64, 3, 7, 7}},
      {"layer1.0.bn2.running_mean", {64}},
      {"layer2.0.downsample.0.weight", {128, 64, 1, 1}},
      {"layer2.0.downsample.1.bias", {128}},
      {"layer4.1.conv2.weight", {512, 512, 3, 3}},
      {"fc.weight", {1000, 512}},
      {"fc.bias", {1000}}};
  for (const auto& [name, shape] : wanted) {
    CAPTURE(name);
    REQUIRE(file->Find(name) != nullptr);
    CHECK(file->Find(name)->shape == shape);
  }
  CHECK(file->tensors().size() == 62 + 40);
}

TEST_CASE("the modules of an nn.Sequential are taken in their order") {
  Files files("layers { mlp { hidden: 3 outputs: 2 } }", {1, 1, 4});
  // With an nn.Flatten before the dense layers; number 10 sorts behind 2.
  const auto flattened =
      files.Read({Tensor("net.10.weight", {2, 3}, 50), Tensor("net.10.bias", {2}, 60),
                  Tensor("net.2.weight", {3, 4}, 10), Tensor("net.2.bias", {3}, 30)});
  INFO(flattened.status());
  REQUIRE(flattened.ok());
  CHECK(files.Of(*flattened, "dense_0/bias") == Counting(3, 30));
  CHECK(files.Of(*flattened, "dense_2/bias") == Counting(2, 60));
  // The tensors have the numbers of the layers.
  CHECK(files
            .Read({Tensor("0.weight", {3, 4}), Tensor("0.bias", {3}), Tensor("2.weight", {2, 3}),
                   Tensor("2.bias", {2})})
            .ok());
  CHECK_THAT(files.Refusal({Tensor("0.weight", {3, 4}), Tensor("0.bias", {3})}),
             Catch::Contains("2 tensors are missing: 2.weight, 2.bias"));
  CHECK_THAT(
      files.Refusal({Tensor("0.weight", {3, 4}), Tensor("0.bias", {3}), Tensor("2.weight", {3, 3}),
                     Tensor("2.bias", {3}), Tensor("4.weight", {2, 3}), Tensor("4.bias", {2})}),
      Catch::Contains("do not belong to the model: 4.weight, 4.bias"));
}

TEST_CASE("what is missing, too much or of another shape is listed") {
  Files files(kSmall, kSmallInput);
  std::vector<Stored> tensors = SmallInTorch();
  tensors.erase(tensors.begin() + 1);
  tensors.push_back(Tensor("extra.weight", {1}));
  CHECK_THAT(files.Refusal(tensors),
             Catch::Contains("1 tensor is missing: bn1.weight; 1 tensor does not "
                             "belong to the model: extra.weight"));
  CHECK_THAT(files.Refusal({Tensor("x", {1})}),
             Catch::Contains("7 tensors are missing: conv1.weight, bn1.weight, bn1.bias, "
                             "bn1.running_mean, bn1.running_var and 2 more"));
  tensors = SmallInTorch();
  tensors[0] = Tensor("conv1.weight", {2, 2, 3, 3});
  const std::string shapes = files.Refusal(tensors);
  CHECK_THAT(shapes, Catch::Contains("'conv1.weight' is [2, 2, 3, 3], not [2, 2, 2, 2]"));
  CHECK_THAT(shapes, !Catch::Contains("class"));
}

TEST_CASE("scores of another number of classes say what to do") {
  Files files(kSmall, kSmallInput);
  std::vector<Stored> tensors = SmallInTorch();
  tensors[5] = Tensor("fc.weight", {5, 8});
  tensors[6] = Tensor("fc.bias", {5});
  const std::string told = files.Refusal(tensors);
  CHECK_THAT(told, Catch::Contains("'fc.weight' is [5, 8], not [2, 8], 'fc.bias' is [5], not [2]"));
  CHECK_THAT(told,
             Catch::Contains("the file's model has 5 classes, but the job's has 2: give the job's "
                             "model 5, or replace the tensors of layer 'fc'"));
}

TEST_CASE("scores of a layer with inputs first are counted along its outputs") {
  Files files("layers { name: \"c_fc\" dense { units: 2 } }", {1, 1, 3});
  CHECK_THAT(files.Refusal({Tensor("c_fc.weight", {3, 5}), Tensor("c_fc.bias", {5})}),
             Catch::Contains("the file's model has 5 classes, but the job's has 2"));
}

TEST_CASE("a model's file keeps its bits of all dtypes only if it is finite") {
  Files files(kSmall, kSmallInput);
  std::vector<Stored> tensors = SmallInTorch();
  tensors[4].values[1] = std::numeric_limits<float>::quiet_NaN();
  CHECK_THAT(files.Refusal(tensors),
             Catch::Contains("tensor 'bn1.running_var' has a value at element 1"));
}

TEST_CASE("a layer called as a wrapper is found") {
  Files files("layers { name: \"model\" dense { units: 2 } }", {1, 1, 3});
  CHECK(files.Read({Tensor("model.weight", {2, 3}), Tensor("model.bias", {2})}).ok());
}

TEST_CASE("layers of GPT-2 that Hugging Face has with inputs first are not transposed") {
  Files files("layers { name: \"c_fc\" dense { units: 2 } }", {1, 1, 3});
  const auto weights =
      files.Read({Tensor("transformer.c_fc.weight", {3, 2}), Tensor("transformer.c_fc.bias", {2})});
  INFO(weights.status());
  REQUIRE(weights.ok());
  CHECK(files.Of(*weights, "c_fc/weight") == Counting(6));
}

TEST_CASE("such a layer behind an image has the features of a channel together, too") {
  Files files("layers { name: \"c_proj\" dense { units: 2 } }", {2, 3, 4});
  const auto weights = files.Read({Tensor("c_proj.weight", {24, 2}), Tensor("c_proj.bias", {2})});
  INFO(weights.status());
  REQUIRE(weights.ok());
  const std::vector<float> dense = files.Of(*weights, "c_proj/weight");
  for (size_t y = 0; y < 2; ++y) {
    for (size_t x = 0; x < 3; ++x) {
      for (size_t c = 0; c < 4; ++c) {
        for (size_t unit = 0; unit < 2; ++unit) {
          const size_t in_file = (c * 2 + y) * 3 + x;
          CHECK(dense[((y * 3 + x) * 4 + c) * 2 + unit] == 1 + in_file * 2 + unit);
        }
      }
    }
  }
}

TEST_CASE("an output layer that is the embedding once more must be equal to it") {
  // Only the embedding's name matters; any layer may have it.
  Files files("layers { name: \"wte\" dense { units: 2 } }", {1, 1, 3});
  const Stored wte = Tensor("transformer.wte.weight", {2, 3}),
               bias = Tensor("transformer.wte.bias", {2});
  CHECK(files.Read({wte, bias, Tensor("lm_head.weight", {2, 3})}).ok());
  CHECK_THAT(files.Refusal({wte, bias, Tensor("lm_head.weight", {2, 3}, 5)}),
             Catch::Contains("'lm_head.weight' differs from 'transformer.wte.weight'"));
}

TEST_CASE("two layers whose tensors PyTorch could not tell apart are refused") {
  Files files("layers { name: \"1\" dense { units: 4 } } layers { dense { units: 2 } }", {1, 1, 3});
  const absl::Status status =
      WriteTorchFile(files.path(), files.config(), files.model(),
                     std::vector<float>(files.model().schema().total()), {});
  CHECK(absl::IsInvalidArgument(status));
  CHECK_THAT(std::string(status.message()),
             Catch::Contains("the layers '1' and 'dense_1' would both have a tensor '1.weight'"));
}

TEST_CASE("errors of what a job starts from have the key") {
  Files files(kSmall, kSmallInput);
  v1::Model config = files.config();
  config.set_initial("none.safetensors");
  const auto weights = ReadInitialWeights(config, files.folder().path(), files.model());
  CHECK(absl::IsNotFound(weights.status()));
  CHECK(KeyOf(weights.status()) == "model.initial");
  CHECK_THAT(std::string(weights.status().message()),
             Catch::Contains(files.folder() / "none.safetensors"));
}

}  // namespace
}  // namespace leeway::testing::model_file
