// Jobs whose workers are the user's own programs.
#include "config/external.h"

#include <string>
#include <vector>

#include "config/job.h"
#include "config/length.h"
#include "config/shards.h"
#include "config/validate.h"
#include "tests/catch.h"
#include "tests/config/bad_job.h"
#include "tests/config/sample_job.h"

namespace leeway::external {
namespace {

using testing::ErrorOf;

// Messages name these line numbers.
const char* const kExternal =
    "apiVersion: leeway/v1\n"                                    // 1
    "kind: TrainingJob\n"                                        // 2
    "metadata: {name: sample}\n"                                 // 3
    "model: {type: external}\n"                                  // 4
    "data: {type: external, batch_size: 64, examples: 60000}\n"  // 5
    "exchange: {type: gradient}\n"                               // 6
    "consistency: {mode: sync}\n"                                // 7
    "stop: {epochs: 2}\n"                                        // 8
    "workers: {count: 3}\n";                                     // 9

std::string External(const std::string& from = "", const std::string& to = "") {
  std::string job = kExternal;
  return job.replace(job.find(from), from.size(), to);
}

v1::TrainingJob Parsed(const std::string& yaml) { return ParseJob(yaml, "job.yaml", {}).value(); }

struct Edit {
  std::string from;
  std::string to;
  // The part of the message after "job.yaml:".
  std::string error;
};

void CheckEdits(const std::vector<Edit>& edits) {
  for (const Edit& edit : edits) {
    INFO("edit: " << edit.from << " -> " << edit.to);
    CHECK(ErrorOf(External(edit.from, edit.to)) == "job.yaml:" + edit.error);
  }
}

TEST_CASE("an external job needs no layers, files, loss or rule, and invents none") {
  const v1::TrainingJob job = Parsed(External());
  CHECK(IsExternal(job));
  CHECK(BringsUpdate(job));
  CHECK(ValidateJob(job).ToString() == "OK");
  const std::string yaml = ToYaml(job);
  CHECK_THAT(yaml, Catch::Contains("model: {type: external}\n"));
  CHECK_THAT(yaml, Catch::Contains("data: {batch_size: 64, type: external, examples: 60000}\n"));
  for (const char* key : {"layers", "train", "update", "device", "partition", "prefetch"}) {
    CAPTURE(key);
    CHECK_THAT(yaml, !Catch::Contains(key));
  }
  CHECK(ToYaml(Parsed(yaml)) == yaml);
  CHECK(JobSha256(Parsed(yaml)) == JobSha256(job));
}

TEST_CASE("exchanges of external jobs have the servers' rule where they need one") {
  const std::string gradient = "{type: gradient}\n";
  const std::string update = "update: {type: sgd, learning_rate: 1}\n";
  CHECK_FALSE(BringsUpdate(Parsed(External(gradient, gradient + update))));
  const std::string delta = "{type: delta, local_steps: 5}\n";
  CHECK(ErrorOf(External(gradient, delta + update)) == "no error");
  CHECK(KeepsWorkerState(Parsed(External(gradient, delta + update))));
  CHECK_FALSE(KeepsWorkerState(Parsed(External())));
  const std::string elastic = "{type: elastic, every: 5}\n";
  const v1::TrainingJob averaged = Parsed(External(gradient, elastic));
  CHECK_FALSE(averaged.has_update());
  CHECK_FALSE(averaged.exchange().elastic().has_optimizer());
  CHECK_FALSE(BringsUpdate(averaged));
  const std::string own = "optimizer: {type: sgd, learning_rate: 1}}\n";
  CheckEdits({
      {gradient, delta,
       "1:1: update: required key is missing: give the servers' rule, such as {type: "
       "sgd, learning_rate: 0.05}"},
      {gradient, "{type: delta, local_steps: 5, " + own + update,
       "6:52: exchange.optimizer: the program has its own optimizer; remove it"},
      {gradient, "{type: elastic, every: 5, " + own,
       "6:48: exchange.optimizer: the program has its own optimizer; remove it"},
      {gradient, "{type: delta, local_steps: 5, spread: true}\n" + update,
       "6:49: exchange.spread: an external program hands in all blocks at the end of its local "
       "steps; remove it"},
      {gradient, elastic + update,
       "7:9: update: an elastic exchange has its own server rule, and the program has its own "
       "optimizer; remove it"},
      {gradient, gradient + "update: {type: sgd, learning_rate: 0}\n",
       "7:36: update.learning_rate: must be above 0; it is 0"},
  });
}

TEST_CASE("model and data are both external, or neither is") {
  CheckEdits({
      {"batch_size: 64, ", "",
       "5:1: data.batch_size: required key is missing with type external: give the number of "
       "examples in one step of one worker, such as batch_size: 64"},
      {"data: {type: external, batch_size: 64, examples: 60000}",
       "data: {train: {type: idx, images: a, labels: b}, batch_size: 64}",
       "5:1: data.type: must be external with model.type external: the program that trains reads "
       "its own examples, such as data: {type: external, batch_size: 64, examples: 60000}"},
      {"model: {type: external}", "model: {layers: [{dense: {units: 1}}], loss: squared}",
       "5:14: data.type: external goes with model.type external only: Leeway's workers read files"},
      {", examples: 60000", "",
       "5:1: data.examples: required key is missing with type external: give the number of "
       "training examples in one pass of all workers together, such as examples: 60000"},
      {"examples: 60000", "examples: 0", "5:50: data.examples: must be at least 1; it is 0"},
      {"model: {type: external}", "model: {type: extern}",
       "4:15: model.type: unknown value 'extern'; did you mean 'external'?\njob.yaml:5:14: "
       "data.type: "
       "external goes with model.type external only: Leeway's workers read files"},
  });
}

TEST_CASE("what would do nothing in an external job is refused with its place") {
  const std::string model = "model: {type: external}", data = "type: external, batch_size: 64";
  const std::string workers = "workers: {count: 3}";
  const auto in_model = [&](const std::string& key) { return "model: {type: external, " + key; };
  const auto in_data = [&](const std::string& key) { return data + ", " + key; };
  const auto in_workers = [](const std::string& key) { return "workers: {count: 3, " + key + "}"; };
  const std::string reads = ": the program reads its own examples; remove it";
  const std::string loss = ": the program computes its own loss; remove it";
  CheckEdits({
      {model, in_model("layers: [{dense: {units: 1}}]}"),
       "4:33: model.layers: an external model is the program's own; remove it"},
      {model, in_model("loss: squared}"), "4:31: model.loss" + loss},
      {model, in_model("label_smoothing: 0.1}"), "4:42: model.label_smoothing" + loss},
      {model, in_model("custom_loss: {name: x}}"), "4:38: model.custom_loss" + loss},
      {model, in_model("initial: x.safetensors}"),
       "4:34: model.initial: training starts from the program's own weights; the program may load "
       "the file; remove it"},
      {model, in_model("plugins: ./x.so}"),
       "4:34: model.plugins: an external model has no layers, so only a plugin's update rule goes "
       "with it; remove it"},
      {data, in_data("train: {type: idx, images: a, labels: b}"), "5:47: data.train" + reads},
      {data, in_data("test: {type: idx, images: a, labels: b}"), "5:46: data.test" + reads},
      {data, in_data("holdout: 0.1"), "5:49: data.holdout" + reads},
      {data, in_data("partition: {type: stratified}"), "5:51: data.partition" + reads},
      {data, in_data("normalize: {mean: 0, std: 1}"), "5:51: data.normalize" + reads},
      {data, in_data("augment: {flip: true}"), "5:49: data.augment" + reads},
      {data, in_data("loader_threads: 4"), "5:56: data.loader_threads" + reads},
      {data, in_data("prefetch: 4"), "5:50: data.prefetch" + reads},
      {data, in_data("assignment: leased"),
       "5:52: data.assignment: leased does not go with a sync job that waits for lost workers, "
       "because each worker repeats its own batches there, with the same bits; leave leased out, "
       "or set workers.on_worker_loss: continue, consistency.backup_workers, or mode bounded or "
       "async"},
      {workers, in_workers("device: cuda"),
       "9:29: workers.device: an external program chooses its own device; remove it"},
      {workers, in_workers("precision: bf16"),
       "9:32: workers.precision: an external program chooses its own precision; remove it"},
      {workers, in_workers("emulate: {step_milliseconds: 5}"),
       "9:30: workers.emulate: only Leeway's own workers can emulate slow ones; remove it"},
      {workers, in_workers("per_host: combine"),
       "9:31: workers.per_host: external programs each send their own contribution; remove it"},
      {workers,
       workers + "\nevaluation: {weights: average}\nupdate: {type: sgd, learning_rate: 1, "
                 "average: {}}",
       "10:23: evaluation.weights: an external program evaluates the weights that it trains; "
       "remove it"},
  });
  // The job states the default explicitly.
  CHECK(
      ErrorOf(External(data, in_data("partition: {type: iid}, loader_threads: 1, prefetch: 2"))) ==
      "no error");
  CHECK(ErrorOf(External(workers, in_workers("device: cpu, precision: fp32, threads: 2"))) ==
        "no error");
}

TEST_CASE("an external job may evaluate, stop early and have a plugin's rule") {
  const std::string stop = "stop: {epochs: 2}\n";
  CHECK(ErrorOf(External(stop, stop + "evaluation: {every: {epochs: 1}, early_stop: {metric: "
                                      "test_accuracy, patience: 2}}\n")) == "no error");
  std::string plugin = External("type: external}", "type: external, plugins: ./x.so}");
  CHECK(ErrorOf(plugin + "update: {type: custom, rule: x, learning_rate: 1}\n") == "no error");
  CHECK_THAT(ErrorOf(External() + "update: {type: custom, rule: x, learning_rate: 1}\n"),
             Catch::Contains("comes from a plugin: name the plugin"));
  // The layers are not known yet: the servers look for them when they make their blocks.
  CHECK(ErrorOf(External() + "compression: {layers: [{names: fc1.weight, contributions: {type: "
                             "int8}}]}\n") == "no error");
}

TEST_CASE("other jobs lack what they always lacked, in the same words") {
  using testing::Sample;
  testing::CheckAll({
      {"  loss: softmax_cross_entropy\n", "", "job.yaml:4:1: model.loss: required key is missing"},
      {"  layers:\n    - flatten: {}\n    - dense: {units: 10}\n", "",
       "job.yaml:4:1: model.layers: required: a list of at least 1 element"},
      {"  train: {type: idx, images: a, labels: b}\n", "",
       "job.yaml:9:1: data.train: required key is missing"},
      {"{type: gradient}", "{type: delta, local_steps: 2}",
       "job.yaml:12:1: exchange.optimizer: required key is missing"},
      {"batch_size: 32", "batch_size: 32\n  examples: 3",
       "job.yaml:12:13: data.examples: goes with data.type external: Leeway counts the examples of "
       "files itself"},
  });
  // Such a job does not state the model's type, either.
  const v1::TrainingJob job = Parsed(Sample("layers:", "type: layers\n  layers:"));
  CHECK(ToYaml(job) == ToYaml(Parsed(Sample())));
  CHECK(CheckHasLayers(job, "leeway-worker").ok());
  CHECK(CheckHasLayers(Parsed(External()), "leeway-worker").message() ==
        "model.type: the job's model is external: only the job's own program can compute it, and "
        "leeway-worker cannot");
}

TEST_CASE("a pass over external examples has as many steps as one over a file's") {
  const auto steps = [](const char* data, uint32_t workers) {
    v1::TrainingJob job = Parsed(External("batch_size: 64, examples: 60000", data));
    job.mutable_workers()->set_count(workers);
    return ExternalStepsPerEpoch(job);
  };
  CHECK(steps("batch_size: 64, examples: 60000", 1) == 938);
  CHECK(steps("batch_size: 64, examples: 60000", 3) == 313);
  CHECK(steps("batch_size: 64, examples: 64", 3) == 1);
  CHECK(steps("batch_size: 64, examples: 385", 3) == 3);
  CHECK(steps("batch_size: 64, examples: 1000000000000000", 1) == 15625000000000);
}

TEST_CASE("a rule that a worker brings may have any slots, which a block's message must hold") {
  CHECK(StateVectors(Parsed(External())) == 5);
  CHECK(StateVectors(Parsed(External() + "update: {type: sgd, learning_rate: 1}\n")) == 2);
}

}  // namespace
}  // namespace leeway::external
