// Plugins in a job: options by name, and which parts fit together.
#include <string>

#include "config/job.h"
#include "tests/catch.h"
#include "tests/config/bad_job.h"
#include "tests/config/sample_job.h"

namespace leeway::plugins {
namespace {

using testing::CheckAll;
using testing::ErrorOf;
using testing::Sample;

const std::string kSwish =
    "dense: {units: 10}\n    - custom: {name: swish, options: {beta: 1.5, alpha: 2}}";

// Returns the sample with a plugin, whose layer is in line 8.
std::string WithLayer(const std::string& layer = kSwish) {
  return Sample("dense: {units: 10}\n", layer + "\n  plugins: [./libmine.so]\n");
}

v1::TrainingJob Parsed(const std::string& yaml, const JobOverrides& overrides = {}) {
  const auto job = ParseJob(yaml, "job.yaml", overrides);
  INFO(job.status());
  REQUIRE(job.ok());
  return *job;
}

double Beta(const v1::TrainingJob& job) {
  return job.model().layers(2).custom().options().at("beta");
}

TEST_CASE("options are numbers by name, and come back from the resolved job") {
  const v1::TrainingJob job = Parsed(WithLayer());
  CHECK(job.model().plugins(0) == "./libmine.so");
  CHECK(job.model().layers(2).custom().options().size() == 2);
  CHECK(Beta(job) == 1.5);
  const std::string yaml = ToYaml(job);
  CHECK_THAT(yaml, Catch::Contains("options: {alpha: 2, beta: 1.5}"));
  const v1::TrainingJob again = Parsed(yaml);
  CHECK(JobSha256(again) == JobSha256(job));
  CHECK(ToYaml(again) == yaml);
}

TEST_CASE("an override sets an option, and brings its own") {
  const std::string yaml = WithLayer();
  CHECK(Beta(Parsed(yaml, {{"model.layers.2.custom.options.beta=3"}, {}})) == 3);
  const v1::TrainingJob more = Parsed(yaml, {{"model.layers.2.custom.options.gamma=4"}, {}});
  CHECK(more.model().layers(2).custom().options().at("gamma") == 4);
  CHECK(Beta(more) == 1.5);
  const std::pair<std::string, std::string> variable = {
      "LEEWAY__MODEL__LAYERS__2__CUSTOM__OPTIONS__BETA", "5"};
  CHECK(Beta(Parsed(yaml, {{}, {variable}})) == 5);
  // The field names of a protobuf map are ordinary names here.
  const v1::TrainingJob key = Parsed(yaml, {{"model.layers.2.custom.options={key: 6}"}, {}});
  CHECK(key.model().layers(2).custom().options().at("key") == 6);
}

TEST_CASE("options that are no numbers are named with their place") {
  const std::string custom = "dense: {units: 10}\n    - custom: {name: swish, options: ";
  const std::pair<std::string, std::string> table[] = {
      {"{beta: high}",
       "job.yaml:8:45: model.layers.2.custom.options.beta: needs a decimal number, "
       "such as 0.5 or 1e-3; it is 'high'"},
      {"{beta: '1'}",
       "job.yaml:8:45: model.layers.2.custom.options.beta: needs a number; it is a "
       "string in quotes"},
      {"{beta: [1]}",
       "job.yaml:8:45: model.layers.2.custom.options.beta: needs a number; it is a list"},
      {"{beta: 1, beta: 2}",
       "job.yaml:8:48: model.layers.2.custom.options.beta: duplicate key; "
       "the first is in line 8"},
      {"[1]",
       "job.yaml:8:38: model.layers.2.custom.options: needs a map of numbers by name, such "
       "as {beta: 0.9}; it is a list"},
      {"3",
       "job.yaml:8:38: model.layers.2.custom.options: needs a map of numbers by name, such as "
       "{beta: 0.9}; it is a single value"},
  };
  for (const auto& [options, error] : table) {
    CHECK(ErrorOf(WithLayer(custom + options + "}")) == error);
  }
  CHECK(ErrorOf(WithLayer("dense: {units: 10}\n    - custom: {option: {beta: 1}}")) ==
        "job.yaml:8:7: model.layers.2.custom.name: required key is missing\njob.yaml:8:16: "
        "model.layers.2.custom.option: unknown key; did you mean 'options'?");
}

TEST_CASE("what is custom needs plugins, and a custom loss its name") {
  const std::string plugin =
      ": comes from a plugin: name the plugin, such as model.plugins: [./libmine.so]";
  CheckAll({
      {"dense: {units: 10}", kSwish, "job.yaml:8:15: model.layers.2.custom" + plugin},
      {"loss: softmax_cross_entropy", "loss: custom\n  custom_loss: {name: huber}",
       "job.yaml:9:16: model.custom_loss" + plugin},
      {"{type: sgd, learning_rate: 0.1}", "{type: custom, rule: signum, learning_rate: 0.1}",
       "job.yaml:14:9: update" + plugin},
      {"{type: gradient}",
       "{type: delta, local_steps: 2, optimizer: {type: custom, rule: signum, learning_rate: 1}}",
       "job.yaml:12:52: exchange.optimizer" + plugin},
      {"loss: softmax_cross_entropy", "loss: custom",
       "job.yaml:4:1: model.custom_loss: required key is missing with loss custom: name the loss "
       "of a plugin, such as custom_loss: {name: huber}"},
      {"loss: softmax_cross_entropy",
       "loss: softmax_cross_entropy\n  plugins: a.so\n  custom_loss: {name: huber}",
       "job.yaml:10:16: model.custom_loss: goes with loss: custom only"},
      {"{type: sgd, learning_rate: 0.1}", "{type: custom, learning_rate: 0.1}",
       "job.yaml:14:1: update.rule: required key is missing"},
  });
}

TEST_CASE("what a plugin computes in a worker is computed on the CPU") {
  const std::string device = "workers: {device: 'cuda:1'}\nstop:";
  std::string layer = WithLayer();
  layer.replace(layer.find("stop:"), 5, device);
  CHECK_THAT(ErrorOf(layer), Catch::Contains("workers.device: model.layers.2.custom comes from a "
                                             "plugin, which computes on the CPU: set device: cpu"));
  // Servers have no GPU.
  std::string rule =
      Sample("{type: sgd, learning_rate: 0.1}", "{type: custom, rule: signum, learning_rate: 0.1}");
  rule.replace(rule.find("stop:"), 5, device);
  rule.replace(rule.find("  loss:"), 7, "  plugins: a.so\n  loss:");
  CHECK(ErrorOf(rule) == "no error");
}

}  // namespace
}  // namespace leeway::plugins
