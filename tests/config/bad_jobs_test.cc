// Every mistake that the reader promises to name, and the exact lines that it prints for it.
#include <algorithm>
#include <string>
#include <vector>

#include "config/job.h"
#include "tests/catch.h"
#include "tests/config/sample_job.h"

namespace leeway {
namespace {

using testing::Sample;

// An edit of the sample job, and the whole message that it gives.
struct BadJob {
  std::string from;
  std::string to;
  std::string error;
};

std::string ErrorOf(const std::string& yaml) {
  const absl::StatusOr<v1::TrainingJob> job = ParseJob(yaml, "job.yaml", {});
  if (job.ok()) return "no error";
  CHECK(job.status().code() == absl::StatusCode::kInvalidArgument);
  return std::string(job.status().message());
}

void CheckAll(const std::vector<BadJob>& jobs) {
  for (const BadJob& job : jobs) {
    INFO("edit: " << job.from << " -> " << job.to);
    CHECK(ErrorOf(Sample(job.from, job.to)) == job.error);
  }
}

TEST_CASE("what becomes of bad gradients goes together, and only where there are gradients") {
  CheckAll({
      {"{type: gradient}", "{type: gradient, on_bad_gradient: clip}",
       "job.yaml:12:1: exchange.max_norm: required key is missing with on_bad_gradient clip: the "
       "norm that a longer gradient is scaled to, such as max_norm: 1"},
      {"{type: gradient}", "{type: gradient, on_bad_gradient: drop}",
       "job.yaml:12:45: exchange.on_bad_gradient: unknown value 'drop'; known are reject, clip, "
       "skip"},
      {"{type: gradient}", "{type: gradient, max_norm: 0}",
       "job.yaml:12:38: exchange.max_norm: must be above 0; it is 0"},
      {"{type: gradient}",
       "{type: delta, local_steps: 2, optimizer: {type: sgd, learning_rate: 1}, on_bad_gradient: "
       "skip}",
       "job.yaml:12:100: exchange.on_bad_gradient: only a gradient can be left out or clipped: "
       "what "
       "a delta or elastic exchange hands in comes of the worker's own weights, which would stay "
       "bad"},
      {"{type: gradient}",
       "{type: delta, local_steps: 2, optimizer: {type: sgd, learning_rate: 1}, max_norm: 1}",
       "job.yaml:12:93: exchange.max_norm: goes with a gradient exchange only"},
  });
  CHECK(ErrorOf(Sample("{type: gradient}",
                       "{type: gradient, on_bad_gradient: clip, max_norm: 1}")) == "no error");
  CHECK(ErrorOf(Sample("{type: gradient}", "{type: gradient, on_bad_gradient: skip}")) ==
        "no error");
}

TEST_CASE("the sample job is good") { CHECK(ErrorOf(Sample()) == "no error"); }

TEST_CASE("wrong, missing and contradicting keys are named with their place") {
  CheckAll({
      {"staleness", "stalenes",
       "job.yaml:13:30: consistency.stalenes: unknown key; did you mean 'staleness'?"},
      {"kind: ", "Kind: ",
       "job.yaml:1:1: kind: required key is missing\njob.yaml:2:1: Kind: unknown key; did you mean "
       "'kind'?"},
      {"{name: sample}", "{name: sample, sed: 3}",
       "job.yaml:3:26: metadata.sed: unknown key; did you mean 'seed'?"},
      {"units: 10", "units: 10, wonderful: 3",
       "job.yaml:7:26: model.layers.1.dense.wonderful: unknown key; known are units, bias, "
       "initializer"},
      {"learning_rate: 0.1", "learning_rate: 0.1, beta1: 0.9",
       "job.yaml:14:41: update.beta1: does not go with type 'sgd'; it belongs to 'adam' and "
       "'adamw'"},
      {"type: gradient", "type: gradient, accumulaton: 2",
       "job.yaml:12:28: exchange.accumulaton: unknown key; did you mean 'accumulation'?"},
      {"stop:", "update: {type: sgd, learning_rate: 1}\nstop:",
       "job.yaml:15:1: update: duplicate key; the first is in line 14"},
      {"mode: bounded", "mode: bounded, mode: sync",
       "job.yaml:13:30: consistency.mode: duplicate key; the first is in line 13"},
      {"- flatten", "- flaten",
       "job.yaml:6:7: model.layers.0.flaten: unknown key; did you mean 'flatten'?"},
      {"flatten: {}", "flatten: {units: 3}",
       "job.yaml:6:17: model.layers.0.flatten.units: unknown key; no key is known here"},
      {"metadata: {name: sample}\n", "", "job.yaml:1:1: metadata: required key is missing"},
      {"  batch_size: 32\n", "", "job.yaml:9:1: data.batch_size: required key is missing"},
      {", learning_rate: 0.1", "", "job.yaml:14:1: update.learning_rate: required key is missing"},
      {"type: gradient", "",
       "job.yaml:12:11: exchange.type: required key is missing; one of gradient, delta, elastic"},
      {"exchange: {type: gradient}\n", "", "job.yaml:1:1: exchange: required key is missing"},
      {"- dense: {units: 10}", "- dense: {units: 10}\n      relu: {}",
       "job.yaml:8:7: model.layers.1.relu: does not go with 'dense' beside it; give one"},
      {"dense: {units: 10}", "name: empty",
       "job.yaml:7:7: model.layers.1: needs one of dense, conv2d, max_pool, avg_pool, relu, gelu, "
       "tanh, batch_norm, dropout, flatten"},
      {"epochs: 2", "epochs: 2, clocks: 5",
       "job.yaml:15:19: stop.clocks: does not go with 'epochs' beside it; give one"},
      {"epochs: 2", "", "job.yaml:15:7: stop: needs one of clocks, epochs"},
      {"type: gradient", "type: elasti",
       "job.yaml:12:18: exchange.type: unknown type 'elasti'; did you mean 'elastic'?"},
      {"mode: bounded", "mode: syncc",
       "job.yaml:13:21: consistency.mode: unknown value 'syncc'; did you mean 'sync'?"},
      {"loss: softmax_cross_entropy", "loss: hinge",
       "job.yaml:8:9: model.loss: unknown value 'hinge'; known are softmax_cross_entropy, "
       "logistic, squared"},
      {"sample}", "sample}\n<<: {stop: 3}",
       "job.yaml:4:1: <<: unknown key; known are apiVersion, kind, metadata, model, data, "
       "exchange, consistency, update, servers, workers, stop, checkpoint, evaluation, limits, "
       "transport, "
       "compression"},
  });
}

TEST_CASE("wrong types and values out of bounds are named with their place") {
  CheckAll({
      {"units: 10", "units: ten",
       "job.yaml:7:22: model.layers.1.dense.units: needs a whole number in decimal digits; it is "
       "'ten'"},
      {"units: 10", "units: 010",
       "job.yaml:7:22: model.layers.1.dense.units: needs a whole number in decimal digits; it is "
       "'010'"},
      {"units: 10", "units: 0x10",
       "job.yaml:7:22: model.layers.1.dense.units: needs a whole number in decimal digits; it is "
       "'0x10'"},
      {"units: 10", "units: 1_000",
       "job.yaml:7:22: model.layers.1.dense.units: needs a whole number in decimal digits; it is "
       "'1_000'"},
      {"units: 10", "units: 1e3",
       "job.yaml:7:22: model.layers.1.dense.units: needs a whole number in decimal digits; it is "
       "'1e3'"},
      {"units: 10", "units: 10.0",
       "job.yaml:7:22: model.layers.1.dense.units: needs a whole number in decimal digits; it is "
       "'10.0'"},
      {"units: 10", "units: '10'",
       "job.yaml:7:22: model.layers.1.dense.units: needs a whole number; it is a text in quotes"},
      {"units: 10", "units: [10]",
       "job.yaml:7:22: model.layers.1.dense.units: needs a whole number; it is a list"},
      {"units: 10", "units: 5000000000",
       "job.yaml:7:22: model.layers.1.dense.units: must be at most 10000000; it is 5000000000"},
      {"units: 10", "units: -1",
       "job.yaml:7:22: model.layers.1.dense.units: must be at least 1; it is -1"},
      {"units: 10", "units: 0",
       "job.yaml:7:22: model.layers.1.dense.units: must be at least 1; it is 0"},
      {"units: 10",
       "units: ", "job.yaml:7:15: model.layers.1.dense.units: needs a whole number; it is empty"},
      {"units: 10", "units: 10, bias: yes",
       "job.yaml:7:32: model.layers.1.dense.bias: needs true or false; it is 'yes'"},
      {"units: 10", "units: 10, bias: on",
       "job.yaml:7:32: model.layers.1.dense.bias: needs true or false; it is 'on'"},
      {"units: 10", "units: 10, bias: True",
       "job.yaml:7:32: model.layers.1.dense.bias: needs true or false; it is 'True'"},
      {"units: 10", "units: 10, bias: 'true'",
       "job.yaml:7:32: model.layers.1.dense.bias: needs true or false; it is a text in quotes"},
      {"learning_rate: 0.1", "learning_rate: .nan",
       "job.yaml:14:36: update.learning_rate: needs a decimal number, such as 0.5 or 1e-3; it is "
       "'.nan'"},
      {"learning_rate: 0.1", "learning_rate: .inf",
       "job.yaml:14:36: update.learning_rate: needs a decimal number, such as 0.5 or 1e-3; it is "
       "'.inf'"},
      {"learning_rate: 0.1", "learning_rate: nan",
       "job.yaml:14:36: update.learning_rate: needs a decimal number, such as 0.5 or 1e-3; it is "
       "'nan'"},
      {"learning_rate: 0.1", "learning_rate: 1e999",
       "job.yaml:14:36: update.learning_rate: is too large: 1e999"},
      {"learning_rate: 0.1", "learning_rate: 0",
       "job.yaml:14:36: update.learning_rate: must be above 0; it is 0"},
      {"learning_rate: 0.1", "learning_rate: -0.1",
       "job.yaml:14:36: update.learning_rate: must be above 0; it is -0.1"},
      {"learning_rate: 0.1", "learning_rate: 00.1",
       "job.yaml:14:36: update.learning_rate: needs a decimal number, such as 0.5 or 1e-3; it is "
       "'00.1'"},
      {"learning_rate: 0.1", "learning_rate: 0,1",
       "job.yaml:14:36: update.learning_rate: must be above 0; it is 0\njob.yaml:14:38: update.1: "
       "unknown key; known are type, momentum, nesterov, weight_decay, learning_rate, schedule"},
      {"learning_rate: 0.1", "learning_rate: 0.1, momentum: 1",
       "job.yaml:14:51: update.momentum: must be below 1; it is 1"},
      {"epochs: 2", "epochs: 1e-999", "job.yaml:15:16: stop.epochs: must be above 0; it is 0"},
      {"{type: gradient}", "gradient",
       "job.yaml:12:11: exchange: needs a map with a type, such as {type: gradient}; it is a "
       "single value"},
      {"{type: gradient}", "~",
       "job.yaml:12:1: exchange: needs a map with a type, such as {type: gradient}; it is empty"},
      {"{type: gradient}", "[gradient]",
       "job.yaml:12:11: exchange: needs a map with a type, such as {type: gradient}; it is a list"},
      {"flatten: {}",
       "flatten:", "job.yaml:6:7: model.layers.0.flatten: needs a map, such as {}; it is empty"},
      {"  layers:\n    - flatten: {}\n    - dense: {units: 10}", "  layers: {dense: {units: 10}}",
       "job.yaml:5:11: model.layers: needs a list; it is a map"},
      {"  layers:\n    - flatten: {}\n    - dense: {units: 10}", "  layers: []",
       "job.yaml:5:11: model.layers: required: a list of at least 1"},
      {"name: sample", "name: ''", "job.yaml:3:18: metadata.name: must not be empty"},
      {"name: sample", "name: [a]", "job.yaml:3:18: metadata.name: needs a text; it is a list"},
      {"name: sample", "name: sample, seed: -1",
       "job.yaml:3:32: metadata.seed: must be at least 0; it is -1"},
      {"name: sample", "name: sample, seed: 18446744073709551616",
       "job.yaml:3:32: metadata.seed: must be at most 18446744073709551615; it is "
       "18446744073709551616"},
      {"leeway/v1", "leeway/v2", "job.yaml:1:13: apiVersion: must be leeway/v1; it is 'leeway/v2'"},
      {"TrainingJob", "Job", "job.yaml:2:7: kind: must be TrainingJob; it is 'Job'"},
      {"batch_size: 32", "batch_size: 32\n  normalize: {mean: 0, std: [1, 0]}",
       "job.yaml:12:33: data.normalize.std.1: must be above 0; it is 0"},
      {"batch_size: 32", "batch_size: 32\n  normalize: {mean: 0, std: 0}",
       "job.yaml:12:29: data.normalize.std: must be above 0; it is 0"},
      {"type: idx, images: a, labels: b", "type: csv, files: a, shape: [1, 2, 3, 4]",
       "job.yaml:10:39: data.train.shape: has 4 elements; at most 3 are allowed"},
      {"batch_size: 32", "batch_size: 32\n  holdout: 1",
       "job.yaml:12:12: data.holdout: must be below 1; it is 1"},
  });
}

TEST_CASE("what is no plain YAML is refused at its place") {
  CheckAll({
      {"name: sample", "name: &x sample",
       "job.yaml:3:18: anchors (&name) are not allowed; write the value out"},
      {"name: sample", "name: *x", "job.yaml:3:18: not YAML: the referenced anchor is not defined"},
      {"name: sample", "name: !!str sample",
       "job.yaml:3:18: tags (!name) are not allowed; leave it out"},
      {"name: sample", "name: ! sample", "job.yaml:3:18: tags (!) are not allowed; leave it out"},
      {"{type: gradient}", "&x {type: gradient}",
       "job.yaml:12:11: anchors (&name) are not allowed; write the value out"},
      {"{type: gradient}", "!!map {type: gradient}",
       "job.yaml:12:11: tags (!name) are not allowed; leave it out"},
      {"stop:", "--- {}\nstop:", "job.yaml:15:1: more than one YAML document; give one"},
      {"stop: {epochs: 2}\n", "stop: {epochs: 2}\n---\n",
       "job.yaml:16:1: more than one YAML document; give one"},
      {"stop: {epochs: 2}", "stop: {epochs: 2",
       "job.yaml:16:1: not YAML: end of map flow not found"},
      {"stop: {epochs: 2}", "stop: {epochs: 2}}", "job.yaml:15:18: not YAML: illegal flow end"},
      {"kind: TrainingJob", "kind: 'TrainingJob",
       "job.yaml:2:7: the quote that opens here is never closed"},
      {"  batch_size: 32", "\tbatch_size: 32", "job.yaml:11:2: not YAML: end of map not found"},
      {"metadata: {name: sample}", "? [a]\n: b", "job.yaml:3:4: a key must be a plain word"},
      {"metadata: {name: sample}", "~: b", "job.yaml:3:1: a key must be a plain word"},
      {"sample", "\"a\\0b\"", "job.yaml:3:18: a text holds a NUL byte"},
      {"stop: {epochs: 2}",
       "stop: [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]",
       "job.yaml:15:38: nested deeper than 32 levels"},
      {"kind: TrainingJob", " kind: TrainingJob", "job.yaml:2:6: not YAML: illegal map value"},
  });
}

TEST_CASE("parts that do not go together are named with their place") {
  CheckAll({
      {"name: sample", "name: a/b",
       "job.yaml:3:18: metadata.name: names the run folder: at most 100 letters, digits, '-', '_' "
       "and '.', not beginning with '.'"},
      {"name: sample", "name: .hidden",
       "job.yaml:3:18: metadata.name: names the run folder: at most 100 letters, digits, '-', '_' "
       "and '.', not beginning with '.'"},
      {", staleness: 3", "",
       "job.yaml:13:1: consistency.staleness: required key is missing with mode bounded: how many "
       "clocks a worker may be ahead of the slowest, such as staleness: 3"},
      {"mode: bounded, staleness: 3", "mode: bounded, staleness: 3, backup_workers: 1",
       "job.yaml:13:60: consistency.backup_workers: only a sync clock can do without its slowest "
       "workers; in bounded and async mode nobody waits for them"},
      {"mode: bounded, staleness: 3", "mode: sync, backup_workers: 1000",
       "job.yaml:13:43: consistency.backup_workers: must be less than workers.count (1): somebody "
       "has to count"},
      {"mode: bounded, staleness: 3", "mode: sync, grace_deviations: -1",
       "job.yaml:13:45: consistency.grace_deviations: must be at least 0; it is -1"},
      {"  batch_size: 32\n",
       "  batch_size: 32\n  partition: {type: stratified}\n  assignment: leased\n",
       "job.yaml:13:15: data.assignment: leased data is everybody's: it needs the partition {type: "
       "iid}; with others a worker has data of its own, and maybe no other"},
      {"stop: {epochs: 2}\n", "servers: {count: 1, replicas: 2}\nstop: {epochs: 2}\n",
       "job.yaml:15:31: servers.replicas: must be at most servers.count (1): each holder of a "
       "block is "
       "a server of its own"},
      {"stop: {epochs: 2}\n",
       "servers: {count: 2, replicas: 2, block_bytes: 67108864}\nstop: {epochs: 2}\n",
       "job.yaml:15:47: servers.block_bytes: must be at most 37224448 with servers.replicas: 2, "
       "for "
       "all of a block's state goes to its other holder in one message: 2 vectors of that size"},
      {"update: {type: sgd, learning_rate: 0.1}\n", "",
       "job.yaml:1:1: update: required key is missing: the servers' rule, such as {type: sgd, "
       "learning_rate: 0.05}"},
      {"type: gradient", "type: elastic, optimizer: {type: sgd, learning_rate: 1}",
       "job.yaml:14:9: update: an elastic exchange brings its own server rule, and its workers "
       "have exchange.optimizer: remove one of the two"},
      {"exchange: {type: gradient}", "exchange: {type: elastic}\nupdates: {}",
       "job.yaml:13:1: updates: unknown key; did you mean 'update'?"},
      {"learning_rate: 0.1", "learning_rate: 0.1, nesterov: true",
       "job.yaml:14:51: update.nesterov: needs a momentum above 0"},
      {"images: a", "images: /a",
       "job.yaml:10:30: data.train.images: must be relative to the data folder; it is /a"},
      {"images: a", "images: x/../../a",
       "job.yaml:10:30: data.train.images: must stay below the data folder; it is x/../../a"},
      {"images: a", "images: ''", "job.yaml:10:30: data.train.images: must not be empty"},
      {"type: idx, images: a, labels: b", "type: csv, files: [a, ../b]",
       "job.yaml:10:33: data.train.files.1: must stay below the data folder; it is ../b"},
      {"type: idx, images: a, labels: b", "type: csv, files: a, separator: '0'",
       "job.yaml:10:43: data.train.separator: must be one character that is in no number, such as "
       "',' ';' or \"\\t\""},
      {"type: idx, images: a, labels: b", "type: csv, files: a, shape: [8, 8]",
       "job.yaml:10:39: data.train.shape: needs [height, width, channels]"},
      {"type: idx, images: a, labels: b", "type: generator, examples: 10, shape: [8, 8]",
       "job.yaml:10:49: data.train.shape: needs [features] or [height, width, channels]"},
      {"type: idx, images: a, labels: b",
       "type: generator, examples: 10, shape: [8000, 8000, 8000]",
       "job.yaml:10:49: data.train.shape: an example has at most 100000000 values"},
      {"batch_size: 32", "batch_size: 32\n  partition: {type: by_file}",
       "job.yaml:12:21: data.partition.type: by_file needs a source with a list of files: cifar10, "
       "csv or libsvm"},
      {"batch_size: 32",
       "batch_size: 32\n  holdout: 0.1\n  test: {type: idx, images: a, labels: b}",
       "job.yaml:12:12: data.holdout: does not go with data.test; give one"},
      {"stop:", "evaluation: {every: {epochs: 1}}\nstop:",
       "job.yaml:15:21: evaluation.every: nothing to evaluate on: give data.test or data.holdout"},
      {"type: idx, images: a, labels: b}",
       "type: libsvm, files: a, features: 3}\n  augment: {flip: true}",
       "job.yaml:11:12: data.augment: only images can be flipped and cropped; data.train holds "
       "none (a csv source needs a shape of [height, width, channels])"},
      {"batch_size: 32", "batch_size: 32\n  normalize: {mean: [1, 2], std: [1, 2, 3]}",
       "job.yaml:12:34: data.normalize.std: has 3 values, and mean has 2"},
      {"    - flatten: {}\n    - dense: {units: 10}", "    - flatten: {}",
       "job.yaml:6:5: model.layers: nothing to train: needs a dense or conv2d layer"},
      {"- flatten: {}", "- {name: dense_1, flatten: {}}",
       "job.yaml:7:7: model.layers.1: the name 'dense_1' is already that of layer 0"},
      {"- flatten: {}", "- {name: a b, flatten: {}}",
       "job.yaml:6:14: model.layers.0.name: at most 100 letters, digits, '-' and '_'"},
      {"stop:", "workers: {count: 2, emulate: {slow: [{ranks: 2, factor: 5}]}}\nstop:",
       "job.yaml:15:46: workers.emulate.slow.0.ranks: there is no rank 2: 2 workers have ranks 0 "
       "to 1"},
      {"stop:", "workers: {count: 2, emulate: {slow: [{ranks: [0, 7], factor: 5}]}}\nstop:",
       "job.yaml:15:50: workers.emulate.slow.0.ranks.1: there is no rank 7: 2 workers have ranks 0 "
       "to 1"},
  });
}

TEST_CASE("a compression that does not go with the job is named with its place") {
  const auto check = [](const std::string& from, const std::string& to,
                        const std::string& compression, const std::string& error) {
    std::string job = Sample(from, to);
    job.insert(job.find("stop:"), "compression: " + compression + "\n");
    INFO(job);
    CHECK(ErrorOf(job) == error);
  };
  const std::string bounded = "mode: bounded, staleness: 3";
  check("", "", "{}", "no error");
  check("", "", "{contributions: {type: top_k, share: 0.001}, weights: {type: bf16}}", "no error");
  check("", "", "{contributions: {type: auto}, weights: {type: auto}}", "no error");
  check("", "", "{layers: [{names: dense_1, contributions: {type: none}}]}", "no error");
  check(bounded, "mode: sync", "{weights: {type: sign}}", "no error");
  check("", "", "{contribution: {type: int8}}",
        "job.yaml:15:15: compression.contribution: unknown key; did you mean 'contributions'?");
  check("", "", "int8",
        "job.yaml:15:14: compression: needs a map, such as {}; it is a single value");
  check("", "", "{contributions: int8}",
        "job.yaml:15:30: compression.contributions: needs a map with a type, such as {type: none}; "
        "it is a single value");
  check(
      "", "", "{contributions: {type: int4}}",
      "job.yaml:15:37: compression.contributions.type: unknown type 'int4'; did you mean 'int8'?");
  check("", "", "{contributions: {type: int8, share: 0.1}}",
        "job.yaml:15:43: compression.contributions.share: does not go with type 'int8'; it belongs "
        "to 'top_k'");
  check("", "", "{contributions: {type: top_k, share: 0}}",
        "job.yaml:15:51: compression.contributions.share: must be above 0; it is 0");
  check("", "", "{contributions: {type: top_k, share: 1.5}}",
        "job.yaml:15:51: compression.contributions.share: must be at most 1; it is 1.5");
  check("", "", "{weights: {type: top_k}}",
        "job.yaml:15:31: compression.weights.type: top_k and sign send the changes from version to "
        "version, which only workers in consistency mode sync all read: use none, bf16, fp16 or "
        "int8");
  check("", "", "{layers: [{names: dense_1, weights: {type: sign}}]}",
        "job.yaml:15:57: compression.layers.0.weights.type: top_k and sign send the changes from "
        "version to version, which only workers in consistency mode sync all read: use none, bf16, "
        "fp16 or int8");
  check("type: gradient", "type: elastic", "{contributions: {type: auto}, weights: {type: sign}}",
        "job.yaml:15:37: compression.contributions.type: an elastic exchange sends the workers' "
        "weights themselves, and nothing makes good what a codec loses of them: only none goes "
        "with it\n"
        "job.yaml:15:60: compression.weights.type: top_k and sign send changes of weights, and an "
        "elastic exchange answers the centre itself: use none, bf16, fp16 or int8");
  check("type: gradient", "type: elastic", "{weights: {type: int8}}", "no error");
  check("", "", "{layers: [{names: [dense_1, dense_2], weights: {type: none}}]}",
        "job.yaml:15:42: compression.layers.0.names.1: the model has no layer 'dense_2'; did you "
        "mean 'dense_1'?");
  check("", "", "{layers: [{names: flatten_0, weights: {type: none}}]}",
        "job.yaml:15:32: compression.layers.0.names: layer 'flatten_0' has no weights");
  check("", "",
        "{layers: [{names: dense_1, weights: {type: none}}, {names: dense_1, weights: {type: "
        "none}}]}",
        "job.yaml:15:73: compression.layers.1.names: layer 'dense_1' is already named in "
        "compression.layers.0");
  check("", "", "{layers: [{names: dense_1}]}",
        "job.yaml:15:24: compression.layers.0: chooses nothing: give contributions, weights or "
        "both");
}

TEST_CASE("bytes that are no text are refused at their place") {
  CHECK(ErrorOf(Sample("sample", std::string("a\0b", 3))) == "job.yaml:3:19: a NUL byte");
  CHECK(ErrorOf(Sample("sample", "a\xff")) == "job.yaml:3:19: a byte that is not UTF-8");
  // Half of a character, an overlong one, a surrogate, and a number above the last character.
  for (const char* bytes : {"\xc3", "\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80"}) {
    CHECK(ErrorOf(Sample("sample", bytes)) == "job.yaml:3:18: a byte that is not UTF-8");
  }
}

TEST_CASE("a file without a job says so") {
  const std::string empty =
      "job.yaml: the file is empty; a job begins with 'apiVersion: leeway/v1'";
  CHECK(ErrorOf("") == empty);
  CHECK(ErrorOf("# only a comment\n") == empty);
  CHECK(ErrorOf("job") ==
        "job.yaml:1:1: not a job, which is a map of keys that begins with 'apiVersion: leeway/v1'");
}

TEST_CASE("a file beyond the limit is refused unread") {
  CHECK(ErrorOf(Sample() + "#" + std::string(1 << 20, ' ')) ==
        "job.yaml: holds 1048926 bytes; a job has at most 1048576");
}

TEST_CASE("all mistakes of a file are listed, in its order") {
  std::string job = Sample("units: 10", "units: ten");
  job.replace(job.find("kind: TrainingJob"), 17, "kind: Job");
  job.replace(job.find("epochs: 2"), 9, "epoch: 2");
  CHECK(ErrorOf(job) ==
        "job.yaml:2:7: kind: must be TrainingJob; it is 'Job'\n"
        "job.yaml:7:22: model.layers.1.dense.units: needs a whole number in decimal digits; it is "
        "'ten'\n"
        "job.yaml:15:8: stop.epoch: unknown key; did you mean 'epochs'?");
}

TEST_CASE("very many mistakes are cut short") {
  std::string job = Sample();
  for (int i = 0; i < 100; ++i) job += "wonder" + std::to_string(i) + ": 1\n";
  const std::string error = ErrorOf(job);
  CHECK(std::count(error.begin(), error.end(), '\n') == 20);
  CHECK(error.substr(error.rfind('\n')) == "\nand 80 more");
}

}  // namespace
}  // namespace leeway
