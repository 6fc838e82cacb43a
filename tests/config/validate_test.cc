// Jobs that were not read from YAML.
#include "config/validate.h"

#include <limits>

#include "config/job.h"
#include "config/model/layer_tree.h"
#include "tests/catch.h"
#include "tests/config/sample_job.h"

namespace leeway::validate {
namespace {

v1::TrainingJob Good() { return ParseJob(testing::Sample(), "job.yaml", {}).value(); }

std::string ErrorOf(const v1::TrainingJob& job) { return std::string(ValidateJob(job).message()); }

TEST_CASE("a job over the wire is held to the rules of the file") {
  CHECK(ErrorOf(Good()) == "");

  v1::TrainingJob job = Good();
  job.mutable_update()->set_learning_rate(std::numeric_limits<double>::quiet_NaN());
  CHECK(ErrorOf(job) == "job: update.learning_rate: must be a finite number");

  job = Good();
  job.mutable_workers()->set_count(0);
  job.mutable_update()->clear_learning_rate();
  CHECK(ErrorOf(job) ==
        "job: update.learning_rate: required key is missing\n"
        "job: workers.count: must be at least 1; it is 0");

  job = Good();
  job.mutable_model()->add_layers();
  CHECK(ErrorOf(job) ==
        "job: model.layers.2: needs one of dense, conv2d, max_pool, avg_pool, "
        "relu, gelu, tanh, batch_norm, dropout, flatten, relu6, silu, global_avg_pool, "
        "pad_channels, layer_norm, group_norm, embedding, position_embedding, attention, "
        "tied_dense, factor_interaction, custom, sequence, residual, repeat, concat, recompute, "
        "mlp, lenet, resnet20, resnet18, resnet50, mobilenet_v2, gpt, logistic, softmax, "
        "factorization_machine");

  job = Good();
  job.mutable_exchange()->clear_type();
  CHECK(ErrorOf(job) ==
        "job: exchange.type: required key is missing; one of gradient, delta, elastic");

  job = Good();
  job.clear_exchange();
  CHECK(ErrorOf(job).find("job: exchange: required key is missing") == 0);

  job = Good();
  job.mutable_metadata()->set_name(std::string("a\0b", 3));
  CHECK(ErrorOf(job).find("metadata.name: contains a NUL byte") != std::string::npos);
}

TEST_CASE("an empty job names everything that it lacks") {
  const std::string error = ErrorOf(v1::TrainingJob());
  for (const char* key : {"model", "data", "stop"}) {
    CHECK(error.find(std::string("job: ") + key + ": required key is missing") !=
          std::string::npos);
  }
}

TEST_CASE("an elastic exchange has an optimizer and no update") {
  v1::TrainingJob job = Good();
  job.mutable_exchange()->mutable_elastic()->set_alpha(0.3);
  CHECK(ErrorOf(job).find("job: exchange.optimizer: required key is missing") == 0);
  *job.mutable_exchange()->mutable_elastic()->mutable_optimizer() = job.update();
  CHECK(ErrorOf(job).find("job: update: an elastic exchange has its own server rule") == 0);
  job.clear_update();
  CHECK(ErrorOf(job) == "");
}

TEST_CASE("a worker for each file is a matter of counts") {
  const std::string yaml =
      testing::Sample("{type: idx, images: a, labels: b}",
                      "{type: csv, files: [a, b]}\n  partition: {type: by_file}");
  CHECK(ParseJob(yaml, "job.yaml", {{"workers.count=2"}, {}}).ok());
  CHECK(ParseJob(yaml, "job.yaml", {{"workers.count=3"}, {}}).status().message() ==
        "job.yaml:11:21: data.partition.type: by_file needs a file for each worker: the job has 3 "
        "workers, but data.train.files has 2 files");
}

// Returns a job with these layers, given as the lines of a file.
absl::StatusOr<v1::TrainingJob> ParseLayers(const std::string& layers) {
  return ParseJob(
      "apiVersion: leeway/v1\nkind: TrainingJob\nmetadata: {name: trees}\nmodel:\n  layers:\n" +
          layers +
          "  loss: softmax_cross_entropy\n"
          "data: {train: {type: generator, examples: 8, shape: [8, 8, 3]}, batch_size: 4}\n"
          "exchange: {type: gradient}\nconsistency: {mode: sync}\n"
          "update: {type: sgd, learning_rate: 0.1}\nstop: {clocks: 1}\n",
      "job.yaml", {});
}

v1::TrainingJob WithLayers(const std::string& layers) {
  const auto job = ParseLayers(layers);
  INFO(job.status());
  REQUIRE(job.ok());
  return *job;
}

std::string LayersError(const std::string& layers) {
  return std::string(ParseLayers(layers).status().message());
}

TEST_CASE("layers within layers are resolved, and read back as they are") {
  const v1::TrainingJob job = WithLayers(
      "  - residual: {layers: [{max_pool: {size: 3}}], shortcut: [{max_pool: {size: 3}}]}\n"
      "  - repeat: {times: 2, layers: [{concat: {branches: [{layers: [{relu: {}}]}, {layers: "
      "[{conv2d: {filters: 2, kernel: 1}}]}]}}]}\n"
      "  - recompute: {layers: [{max_pool: {size: 3}}, {relu: {}}]}\n"
      "  - dense: {units: 2}\n");
  CHECK(job.model().layers(0).residual().shortcut(0).max_pool().stride() == 3);
  CHECK(job.model().layers(2).recompute().layers(0).max_pool().stride() == 3);
  CHECK(job.model().layers(1).repeat().layers(0).concat().branches(1).layers(0).conv2d().bias());
  const std::string yaml = ToYaml(job);
  const auto again = ParseJob(yaml, "again.yaml", {});
  INFO(yaml << again.status());
  REQUIRE(again.ok());
  CHECK(JobSha256(*again) == JobSha256(job));
  CHECK(CountLayers(job.model()) == 12);
}

TEST_CASE("a model by name is written out in the resolved job") {
  const v1::TrainingJob job = WithLayers("  - resnet20: {classes: 2}\n");
  CHECK(job.model().layers(0).name() == "conv1");
  CHECK(job.model().layers(0).conv2d().groups() == 1);
  // The shortcut's pooling has the block's stride, not that of a window.
  const v1::Residual& block = job.model().layers(4).sequence().layers(0).residual();
  CHECK(block.shortcut(0).avg_pool().stride() == 2);
  const auto again = ParseJob(ToYaml(job), "again.yaml", {});
  INFO(again.status());
  REQUIRE(again.ok());
  CHECK(JobSha256(*again) == JobSha256(job));
}

TEST_CASE("mistakes in layers within layers have their place") {
  CHECK(
      LayersError("  - residual:\n      layers:\n      - dense: {unit: 3}\n  - dense: {units: 2}\n")
          .find("job.yaml:8:17: model.layers.0.residual.layers.0.dense.unit: unknown key; did you "
                "mean 'units'?") != std::string::npos);
  CHECK(LayersError("  - residual: {layers: []}\n  - dense: {units: 2}\n")
            .find("model.layers.0.residual.layers: required: a list of at least 1 element") !=
        std::string::npos);
  CHECK(LayersError("  - repeat: {times: 1000, layers: [{repeat: {times: 1000, layers: [{dense: "
                    "{units: 2}}]}}]}\n")
            .find("model.layers: counting nested layers, the model has more than 10000") !=
        std::string::npos);
  CHECK(
      LayersError("  - sequence: {layers: [{name: a, relu: {}}, {name: a, dense: {units: 2}}]}\n")
          .find("model.layers.0.sequence.layers.1.name: the name 'sequence_0.a' is already used by "
                "model.layers.0.sequence.layers.0") != std::string::npos);
  // This includes containers.
  CHECK(LayersError(
            "  - {name: a, sequence: {layers: [{relu: {}}]}}\n  - {name: a, dense: {units: 2}}\n")
            .find("model.layers.1.name: the name 'a' is already used by model.layers.0") !=
        std::string::npos);
  CHECK(LayersError("  - mlp: {hidden: 4}\n  - {name: mlp_0, dense: {units: 2}}\n")
            .find("model.layers.1.name: the name 'mlp_0' is already used by model.layers.0") !=
        std::string::npos);
  // As deep as a resolved job can be read back, and no deeper.
  const auto nested = [](int depth) {
    std::string text = "mlp: {hidden: 4, outputs: 2}";
    for (int i = 0; i < depth; ++i) text = "sequence: {layers: [{" + text + "}]}";
    return "  - {" + text + "}\n";
  };
  const auto deepest = ParseLayers(nested(14));
  INFO(deepest.status());
  REQUIRE(deepest.ok());
  CHECK(ParseJob(ToYaml(*deepest), "again.yaml", {}).ok());
  CHECK(LayersError(nested(15)).find("more than 16 layers are nested") != std::string::npos);
  CHECK(LayersError("  - resnet18: {stem: vgg}\n").find("unknown value 'vgg'") !=
        std::string::npos);
}

}  // namespace
}  // namespace leeway::validate
