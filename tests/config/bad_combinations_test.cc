// Parts of a job that are each valid but do not fit together.
#include <string>

#include "tests/catch.h"
#include "tests/config/bad_job.h"
#include "tests/config/sample_job.h"

namespace leeway::bad_combinations {
namespace {

using testing::CheckAll;
using testing::ErrorOf;
using testing::Sample;

TEST_CASE("what becomes of bad gradients goes together, and only where there are gradients") {
  CheckAll({
      {"{type: gradient}", "{type: gradient, on_bad_gradient: clip}",
       "job.yaml:12:1: exchange.max_norm: required key is missing with on_bad_gradient clip: give "
       "the norm to which a longer gradient is scaled, such as max_norm: 1"},
      {"{type: gradient}", "{type: gradient, on_bad_gradient: drop}",
       "job.yaml:12:45: exchange.on_bad_gradient: unknown value 'drop'; use one of reject, clip, "
       "skip"},
      {"{type: gradient}", "{type: gradient, max_norm: 0}",
       "job.yaml:12:38: exchange.max_norm: must be above 0; it is 0"},
      {"{type: gradient}",
       "{type: delta, local_steps: 2, optimizer: {type: sgd, learning_rate: 1}, on_bad_gradient: "
       "skip}",
       "job.yaml:12:100: exchange.on_bad_gradient: only a gradient can be left out or clipped: "
       "the contribution of a delta or elastic exchange comes from the worker's own weights, and "
       "those would stay bad"},
      {"{type: gradient}",
       "{type: delta, local_steps: 2, optimizer: {type: sgd, learning_rate: 1}, max_norm: 1}",
       "job.yaml:12:93: exchange.max_norm: goes with a gradient exchange only"},
  });
  CHECK(ErrorOf(Sample("{type: gradient}",
                       "{type: gradient, on_bad_gradient: clip, max_norm: 1}")) == "no error");
  CHECK(ErrorOf(Sample("{type: gradient}", "{type: gradient, on_bad_gradient: skip}")) ==
        "no error");
}

TEST_CASE("an elastic centre that would diverge in sync mode is refused") {
  const auto error = [](const std::string& mode, int workers) {
    std::string job =
        Sample("{type: gradient}",
               "{type: elastic, alpha: 0.3, optimizer: {type: sgd, learning_rate: 1}}");
    job.replace(job.find("update:"), job.find("stop:") - job.find("update:"),
                "workers: {count: " + std::to_string(workers) + "}\n");
    const std::string bounded = "{mode: bounded, staleness: 3}";
    return ErrorOf(job.replace(job.find(bounded), bounded.size(), mode));
  };
  CHECK(error("{mode: sync}", 6) == "no error");
  CHECK(error("{mode: sync}", 7) ==
        "job.yaml:12:34: exchange.alpha: 0.3 x 7 workers is 2.1: in sync mode the centre diverges "
        "if this is 2 or more; lower the key, or remove it (the default is 0.9 / workers.count)");
  CHECK(error("{mode: async}", 7) == "no error");
  CHECK(error("{mode: bounded, staleness: 3}", 7) == "no error");
}

TEST_CASE("a moving average of the weights is kept by the servers, and evaluated if it is kept") {
  const std::string missing =
      "evaluation.weights: average needs update.average, such as {decay: 0.999}";
  const std::string stop = "stop: {epochs: 2}";
  CHECK_THAT(ErrorOf(Sample(stop, stop + "\nevaluation: {weights: average}")),
             Catch::Contains(missing));
  CHECK(ErrorOf(Sample("{type: sgd,", "{average: {}, type: sgd,")) == "no error");
  const std::string local = "optimizer: {type: sgd, learning_rate: 1, average: {decay: 0.9}}}";
  CHECK_THAT(ErrorOf(Sample("{type: gradient}", "{type: delta, local_steps: 2, " + local)),
             Catch::Contains(
                 "exchange.optimizer.average: the servers keep the average: put it into `update`"));
  const std::string steps = "optimizer: {type: adam, learning_rate: 1, steps_by_element: true}}";
  CHECK_THAT(ErrorOf(Sample("{type: gradient}", "{type: delta, local_steps: 2, " + steps)),
             Catch::Contains("exchange.optimizer.steps_by_element: is for contributions that "
                             "update only a part of the model"));
  for (const char* decay : {"1", "-0.1", "2"}) {
    CAPTURE(decay);
    const std::string average = std::string("{average: {decay: ") + decay + "}, type: sgd,";
    CHECK_THAT(ErrorOf(Sample("{type: sgd,", average)), Catch::Contains("update.average.decay"));
  }
}

TEST_CASE("an early stop needs evaluations, and a value that they have") {
  const std::string stop = "stop: {epochs: 2}";
  const std::string tested = "labels: b}\n  test: {type: idx, images: a, labels: b}\n";
  const auto error = [&](const std::string& evaluation, const std::string& from = "",
                         const std::string& to = "") {
    std::string yaml = Sample(stop, stop + "\nevaluation: " + evaluation);
    yaml.replace(yaml.find("labels: b}\n"), 11, tested);
    if (!from.empty()) yaml.replace(yaml.find(from), from.size(), to);
    return ErrorOf(yaml);
  };
  const std::string every = "{every: {epochs: 1}, early_stop: ";
  CHECK(error(every + "{patience: 3}}") == "no error");
  CHECK(error(every + "{patience: 3, metric: test_accuracy, min_change: 0.001}}") == "no error");
  CHECK(error("{early_stop: {patience: 3}}") ==
        "job.yaml:17:1: evaluation.every: required key is missing with early_stop, which needs "
        "evaluations: say how often, such as every: {epochs: 1}");
  CHECK(error(every + "{}}") ==
        "job.yaml:17:34: evaluation.early_stop.patience: required key is missing");
  CHECK(error(every + "{patience: 0}}") ==
        "job.yaml:17:57: evaluation.early_stop.patience: must be at least 1; it is 0");
  CHECK(error(every + "{patience: 1, min_change: -1}}") ==
        "job.yaml:17:72: evaluation.early_stop.min_change: must be at least 0; it is -1");
  CHECK(error(every + "{patience: 1, metric: loss}}") ==
        "job.yaml:17:68: evaluation.early_stop.metric: unknown value 'loss'; use one of test_loss, "
        "test_accuracy");
  CHECK(
      error(every + "{patience: 3, metric: test_accuracy}}", "softmax_cross_entropy", "squared") ==
      "job.yaml:17:68: evaluation.early_stop.metric: loss squared has no accuracy: use metric: "
      "test_loss");
  CHECK(error(every + "{patience: 3}}", tested, "labels: b}\n") ==
        "job.yaml:16:21: evaluation.every: nothing to evaluate on: give data.test or data.holdout");
}

TEST_CASE("factors and scaling are bounded, of servers' rules and workers' optimizers") {
  const std::string sgd = "type: sgd, learning_rate: 0.1";
  CheckAll({
      {sgd, sgd + ", factors: {bias: {weight_decay: 0}}",
       "job.yaml:14:51: update.factors.bias: unknown key; did you mean 'biases'?"},
      {sgd, sgd + ", factors: {biases: {weight_decay: -1}}",
       "job.yaml:14:74: update.factors.biases.weight_decay: must be at least 0; it is -1"},
      {sgd, sgd + ", factors: {norms: {learning_rate: 1e9}}",
       "job.yaml:14:74: update.factors.norms.learning_rate: must be at most 1000000; it is "
       "1000000000"},
      {sgd, sgd + ", scaling: cubic",
       "job.yaml:14:50: update.scaling: unknown value 'cubic'; use one of none, linear, "
       "square_root"},
      {sgd, "type: lion, learning_rate: 0.1, beta2: 1",
       "job.yaml:14:49: update.beta2: must be below 1; it is 1"},
      {"{type: gradient}",
       "{type: delta, local_steps: 2, optimizer: {type: sgd, learning_rate: 1, factors: "
       "{embeddings: {weight_decay: x}}}}",
       "job.yaml:12:119: exchange.optimizer.factors.embeddings.weight_decay: needs a decimal "
       "number, "
       "such as 0.5 or 1e-3; it is 'x'"},
  });
  // A rule without decay also accepts a factor of the decay.
  CHECK(ErrorOf(Sample(sgd, sgd + ", scaling: linear, factors: {biases: {weight_decay: 0}, norms: "
                                  "{weight_decay: 0, learning_rate: 2}, embeddings: {}}")) ==
        "no error");
  CHECK(ErrorOf(Sample(sgd, "type: lion, learning_rate: 0.1, weight_decay: 0.1")) == "no error");
}

TEST_CASE("a block that travels holds what workers have only where they are sent changes") {
  const auto error = [](const std::string& compression) {
    return ErrorOf(
        Sample("{mode: bounded, staleness: 3}\nupdate: {type: sgd, learning_rate: 0.1}\n",
               "{mode: sync}\nupdate: {type: sgd, learning_rate: 0.1}\n" + compression +
                   "servers: {count: 2, replicas: 2, block_bytes: 25165824}\n"));
  };
  // The weights and those of the previous version.
  CHECK(error("") == "no error");
  CHECK(error("compression: {weights: {type: int8}}\n") == "no error");
  CHECK(error("compression: {weights: {type: auto}}\n") == "no error");
  CHECK(error("compression: {contributions: {type: top_k}}\n") == "no error");
  const std::string refused =
      "job.yaml:16:47: servers.block_bytes: must be at most 24816298 with servers.replicas: 2, "
      "because the whole state of a block, 3 vectors of this size, goes to its replica in one "
      "message";
  CHECK(error("compression: {weights: {type: top_k}}\n") == refused);
  CHECK(error("compression: {layers: [{names: dense_1, weights: {type: sign}}]}\n") == refused);
}

TEST_CASE("workers combine where a host's sum is what the servers want, and nowhere else") {
  const auto combine = [](const std::string& rest) {
    return "stop: {epochs: 2}\nworkers: {count: 2, per_host: combine" + rest + "}\n";
  };
  const std::string stop = "stop: {epochs: 2}\n";
  const std::string sync = Sample("mode: bounded, staleness: 3", "mode: sync");
  const auto error = [&](std::string yaml, const std::string& workers, const std::string& from = "",
                         const std::string& to = "") {
    yaml.replace(yaml.find(stop), stop.size(), workers);
    if (!from.empty()) yaml.replace(yaml.find(from), from.size(), to);
    return testing::ErrorOf(yaml);
  };
  const std::string delta = "type: delta, local_steps: 2, optimizer: {type: sgd, learning_rate: 1}";
  CHECK(error(sync, combine("")) == "no error");
  CHECK(error(sync, combine(""), "type: gradient", delta) == "no error");
  CHECK(error(Sample("", ""), "stop: {epochs: 2}\nworkers: {per_host: separate}\n") == "no error");
  CHECK(error(Sample("", ""), combine("")) ==
        "job.yaml:16:31: workers.per_host: combine goes with consistency.mode sync only: in other "
        "modes the workers of a host do not hand in the same clock at the same time, so there is "
        "no sum to send; leave it out, or set per_host: separate");
  CHECK_THAT(error(sync, combine(""), "mode: sync", "mode: sync, backup_workers: 1"),
             Catch::StartsWith("job.yaml:16:31: workers.per_host: combine does not go with "
                               "consistency.backup_workers: "));
  CHECK_THAT(error(sync, combine(", on_worker_loss: continue")),
             Catch::StartsWith("job.yaml:16:31: workers.per_host: combine does not go with "
                               "workers.on_worker_loss: continue: "));
  CHECK_THAT(error(sync, combine(""), "type: gradient", delta + ", spread: true"),
             Catch::StartsWith("job.yaml:16:31: workers.per_host: combine does not go with "
                               "exchange.spread: "));
  CHECK_THAT(error(sync, combine(""), "type: gradient", delta + ", weighting: equal"),
             Catch::StartsWith("job.yaml:16:31: workers.per_host: combine does not go with "
                               "exchange.weighting: equal: "));
  std::string elastic = sync;
  const std::string update = "update: {type: sgd, learning_rate: 0.1}\n";
  elastic.replace(elastic.find(update), update.size(), "");
  CHECK_THAT(error(elastic, combine(""), "type: gradient",
                   "type: elastic, optimizer: {type: sgd, learning_rate: 1}"),
             Catch::StartsWith("job.yaml:15:31: workers.per_host: combine goes with gradient and "
                               "delta exchanges only: "));
}

TEST_CASE("a spread exchange does not go with what counts whole contributions") {
  const std::string spread =
      "{type: delta, local_steps: 2, spread: true, optimizer: {type: sgd, "
      "learning_rate: 1}}";
  const std::string elastic =
      "{type: elastic, every: 2, spread: true, optimizer: {type: sgd, "
      "learning_rate: 1}}";
  const std::string update = "update: {type: sgd, learning_rate: 0.1}\n";
  const std::string lossy = "workers: {count: 3, on_worker_loss: continue}\n";
  const auto error = [&](const std::string& exchange, const std::string& mode,
                         const std::string& rest) {
    std::string job = Sample("{type: gradient}", exchange);
    const std::string bounded = "{mode: bounded, staleness: 3}";
    job.replace(job.find(bounded), bounded.size(), mode);
    if (exchange == elastic) job.replace(job.find(update), update.size(), "");
    return ErrorOf(job + rest);
  };
  const std::string why =
      " in mode sync: the coordinator decides which workers count once their whole contributions "
      "have arrived, but a spread worker sends its last blocks only after its first ones are "
      "answered; leave spread out";
  CHECK(error(spread, "{mode: sync}", lossy) ==
        "job.yaml:12:49: exchange.spread: does not go with workers.on_worker_loss: continue" + why);
  CHECK(error(elastic, "{mode: sync}", lossy) ==
        "job.yaml:12:45: exchange.spread: does not go with workers.on_worker_loss: continue" + why);
  CHECK(error(spread, "{mode: sync}", "workers: {count: 3}\n") == "no error");
  CHECK(error(spread, "{mode: async}", lossy) == "no error");
  CHECK(error(elastic, "{mode: bounded, staleness: 2}", lossy) == "no error");
}

TEST_CASE("what does not go with text is named with its place") {
  const std::string source = "type: idx, images: a, labels: b";
  const std::string text = "type: text, files: a, context: 8";
  const std::string train = source + "}\n";
  CheckAll({
      {source, "type: text, files: ../a, context: 8",
       "job.yaml:10:30: data.train.files: must stay below the data folder, or be absolute; it is "
       "../a"},
      {source, text + ", unit: bytes, vocabulary: v",
       "job.yaml:10:70: data.train.vocabulary: goes with unit characters or bpe only: with unit "
       "bytes the vocabulary is the 256 bytes"},
      {source, text + ", vocabulary: ../v",
       "job.yaml:10:57: data.train.vocabulary: must stay below the data folder, or be absolute; it "
       "is ../v"},
      {source, text + ", unit: bpe",
       "job.yaml:10:3: data.train.vocabulary: required key is missing with unit bpe: name a folder "
       "with "
       "vocab.json and merges.txt, or a tokenizer.json"},
      {train, text + "}\n  normalize: {mean: 0, std: 1}\n",
       "job.yaml:11:14: data.normalize: tokens are numbers of a vocabulary and cannot be "
       "normalized; remove it"},
      {train, text + "}\n  augment: {flip: true}\n",
       "job.yaml:11:12: data.augment: only images can be flipped and cropped; data.train has no "
       "images (a csv source needs a shape of [height, width, channels])"},
      {train, text + "}\n  partition: {type: stratified}\n",
       "job.yaml:11:21: data.partition.type: needs one class for each example, and a text has no "
       "classes: use iid or by_file"},
      {train, source + "}\n  test: {" + text + "}\n",
       "job.yaml:11:16: data.test.type: data.train and data.test must both be text, or neither"},
      {train, text + "}\n  test: {" + source + "}\n",
       "job.yaml:11:16: data.test.type: data.train and data.test must both be text, or neither"},
      {train, text + "}\n  test: {" + text + ", unit: bytes}\n",
       "job.yaml:11:50: data.test.unit: must be the same as in data.train"},
      {train, text + "}\n  test: {" + text + "0}\n",
       "job.yaml:11:41: data.test.context: must be the same as in data.train, which is 8"},
      {train, text + ", vocabulary: v}\n  test: {" + text + ", vocabulary: w}\n",
       "job.yaml:11:56: data.test.vocabulary: must be the same as in data.train, or left out"},
  });
}

TEST_CASE("parts that do not go together are named with their place") {
  CheckAll({
      {"name: sample", "name: a/b",
       "job.yaml:3:18: metadata.name: must have at most 100 letters, digits, '-', '_' and '.', and "
       "not begin with '.', because it names the run folder"},
      {"name: sample", "name: .hidden",
       "job.yaml:3:18: metadata.name: must have at most 100 letters, digits, '-', '_' and '.', and "
       "not begin with '.', because it names the run folder"},
      {", staleness: 3", "",
       "job.yaml:13:1: consistency.staleness: required key is missing with mode bounded: say how "
       "many clocks a worker may be ahead of the slowest, such as staleness: 3"},
      {"mode: bounded, staleness: 3", "mode: bounded, staleness: 3, backup_workers: 1",
       "job.yaml:13:60: consistency.backup_workers: goes with consistency.mode sync only: in "
       "bounded and async mode no clock waits for the slowest workers"},
      {"mode: bounded, staleness: 3", "mode: sync, backup_workers: 1000",
       "job.yaml:13:43: consistency.backup_workers: must be less than workers.count (1): at least "
       "one contribution must count"},
      {"mode: bounded, staleness: 3", "mode: sync, grace_deviations: -1",
       "job.yaml:13:45: consistency.grace_deviations: must be at least 0; it is -1"},
      {"  batch_size: 32\n",
       "  batch_size: 32\n  partition: {type: stratified}\n  assignment: leased\n",
       "job.yaml:13:15: data.assignment: leased needs data.partition {type: iid}, because any "
       "worker may get a leased batch; in other partitions a worker has only its own data"},
      {"stop: {epochs: 2}\n", "servers: {count: 1, replicas: 2}\nstop: {epochs: 2}\n",
       "job.yaml:15:31: servers.replicas: must be at most servers.count (1): each copy of a block "
       "needs its own server"},
      {"}\nstop: {epochs: 2}\n",
       ", momentum: 0.9}\nservers: {count: 2, replicas: 2, block_bytes: 67108864}\nstop: {epochs: "
       "2}\n",
       "job.yaml:15:47: servers.block_bytes: must be at most 37224448 with servers.replicas: 2, "
       "because the whole state of a block, 2 vectors of this size, goes to its replica in one "
       "message"},
      {"stop: {epochs: 2}\n", "servers: {count: 3, shards: 2}\nstop: {epochs: 2}\n",
       "job.yaml:15:29: servers.shards: must be 0, or at least servers.count (3): each server "
       "needs a shard"},
      {"}\nstop: {epochs: 2}\n",
       ", momentum: 0.9}\nservers: {count: 2, shards: 8, block_bytes: 67108864}\nstop: {epochs: "
       "2}\n",
       "job.yaml:15:45: servers.block_bytes: must be at most 37224448 with servers.shards, because "
       "the whole state of a block, 2 vectors of this size, goes to another server in one message"},
      {"stop: {epochs: 2}\n", "servers: {count: 3, max: 2}\nstop: {epochs: 2}\n",
       "job.yaml:15:26: servers.max: must be 0, or at least servers.count (3)"},
      {"stop: {epochs: 2}\n", "servers: {count: 1, max: 4, shards: 2}\nstop: {epochs: 2}\n",
       "job.yaml:15:26: servers.max: must be at most servers.shards (2): each server needs a "
       "shard"},
      {"stop: {epochs: 2}\n", "servers: {count: 2, max: 4, min: 3}\nstop: {epochs: 2}\n",
       "job.yaml:15:34: servers.min: must be at most servers.count (2)"},
      {"stop: {epochs: 2}\n",
       "servers: {count: 2, max: 4, min: 1, replicas: 2}\nstop: {epochs: 2}\n",
       "job.yaml:15:34: servers.min: must be at least servers.replicas (2): each copy of a block "
       "needs its own server"},
      {"stop: {epochs: 2}\n", "servers: {count: 2, min: 1}\nstop: {epochs: 2}\n",
       "job.yaml:15:26: servers.min: goes with servers.max only: without servers.max only `leeway "
       "resize` changes the number of servers"},
      {"update: {type: sgd, learning_rate: 0.1}\n", "",
       "job.yaml:1:1: update: required key is missing: give the servers' rule, such as {type: sgd, "
       "learning_rate: 0.05}"},
      {"type: gradient", "type: elastic, optimizer: {type: sgd, learning_rate: 1}",
       "job.yaml:14:9: update: an elastic exchange has its own server rule, so `update` is the "
       "workers' rule, which exchange.optimizer gives as well: remove one of the two"},
      {"exchange: {type: gradient}", "exchange: {type: elastic}\nupdates: {}",
       "job.yaml:13:1: updates: unknown key; did you mean 'update'?"},
      {"learning_rate: 0.1", "learning_rate: 0.1, nesterov: true",
       "job.yaml:14:51: update.nesterov: needs a momentum above 0"},
      {"type: sgd, learning_rate: 0.1", "type: adam, learning_rate: 0.1, initial_v: 0.01",
       "job.yaml:14:53: update.initial_v: the bias correction assumes that v starts at 0: set "
       "bias_correction: false too, as in FedAdam's paper"},
      {"images: a", "images: x/../../a",
       "job.yaml:10:30: data.train.images: must stay below the data folder, or be absolute; it is "
       "x/../../a"},
      {"images: a", "images: ''", "job.yaml:10:30: data.train.images: must not be empty"},
      {"type: idx, images: a, labels: b", "type: csv, files: [a, ../b]",
       "job.yaml:10:33: data.train.files.1: must stay below the data folder, or be absolute; it is "
       "../b"},
      {"type: idx, images: a, labels: b", "type: csv, files: a, separator: '0'",
       "job.yaml:10:43: data.train.separator: must be one character that numbers do not contain, "
       "such as ',' ';' or \"\\t\""},
      {"type: idx, images: a, labels: b", "type: csv, files: a, separator: '\"'",
       "job.yaml:10:43: data.train.separator: must be one character that numbers do not contain, "
       "such as ',' ';' or \"\\t\""},
      {"type: idx, images: a, labels: b", "type: csv, files: a, label: x, label_column: 2",
       "job.yaml:10:56: data.train.label_column: does not go with 'label'; give one of the two"},
      {"type: idx, images: a, labels: b",
       "type: csv, files: a, categories: [{column: x, values: [a, b, a]}]",
       "job.yaml:10:72: data.train.categories.0.values.2: is listed twice"},
      {"type: idx, images: a, labels: b",
       "type: csv, files: a, categories: [{column: x, values: [a, b]}], missing: [c, b]",
       "job.yaml:10:69: data.train.categories.0.values.1: is also listed in missing"},
      {"type: idx, images: a, labels: b}",
       "type: csv, files: a, categories: [{column: x, values: [a, b]}]}\n"
       "  test: {type: csv, files: b, categories: [{column: x, values: [b, a]}]}",
       "job.yaml:11:43: data.test.categories: must be the same as in data.train, or left out"},
      {"type: idx, images: a, labels: b", "type: csv, files: a, shape: [8, 8]",
       "job.yaml:10:39: data.train.shape: needs [height, width, channels]"},
      {"type: idx, images: a, labels: b", "type: generator, examples: 10, shape: [8, 8]",
       "job.yaml:10:49: data.train.shape: needs [features] or [height, width, channels]"},
      {"type: idx, images: a, labels: b",
       "type: generator, examples: 10, shape: [8000, 8000, 8000]",
       "job.yaml:10:49: data.train.shape: an example has at most 100000000 values"},
      {"batch_size: 32", "batch_size: 32\n  partition: {type: by_file}",
       "job.yaml:12:21: data.partition.type: by_file needs a source with a list of files: cifar10, "
       "cifar100, csv, libsvm or text"},
      {"batch_size: 32",
       "batch_size: 32\n  holdout: 0.1\n  test: {type: idx, images: a, labels: b}",
       "job.yaml:12:12: data.holdout: does not go with data.test; give one of the two"},
      {"stop:", "evaluation: {every: {epochs: 1}}\nstop:",
       "job.yaml:15:21: evaluation.every: nothing to evaluate on: give data.test or data.holdout"},
      {"type: idx, images: a, labels: b}",
       "type: libsvm, files: a, features: 3}\n  augment: {flip: true}",
       "job.yaml:11:12: data.augment: only images can be flipped and cropped; data.train has no "
       "images (a csv source needs a shape of [height, width, channels])"},
      {"type: idx, images: a, labels: b", "type: numpy, features: ../a, labels: b",
       "job.yaml:10:34: data.train.features: must stay below the data folder, or be absolute; it "
       "is ../a"},
      {"type: idx, images: a, labels: b", "type: image_folder, folder: a/.., height: 8, width: 8",
       "job.yaml:10:39: data.train.folder: must stay below the data folder, or be absolute; it is "
       "a/.."},
      {"type: idx, images: a, labels: b", "type: cifar100, files: [a, ../b]",
       "job.yaml:10:38: data.train.files.1: must stay below the data folder, or be absolute; it "
       "is ../b"},
      {"batch_size: 32", "batch_size: 32\n  normalize: {mean: [1, 2], std: [1, 2, 3]}",
       "job.yaml:12:34: data.normalize.std: has 3 values, but mean has 2"},
      {"    - flatten: {}\n    - dense: {units: 10}", "    - flatten: {}",
       "job.yaml:6:5: model.layers: nothing to train: needs a layer with weights, such as dense or "
       "conv2d"},
      {"- flatten: {}", "- {name: dense_1, flatten: {}}",
       "job.yaml:7:7: model.layers.1: the name 'dense_1' is already used by model.layers.0"},
      {"- flatten: {}", "- {name: a b, flatten: {}}",
       "job.yaml:6:14: model.layers.0.name: must have at most 100 letters, digits, '-' and '_'"},
      {"stop:", "workers: {count: 2, emulate: {slow: [{ranks: 2, factor: 5}]}}\nstop:",
       "job.yaml:15:46: workers.emulate.slow.0.ranks: rank 2 does not exist: 2 workers have ranks "
       "0 to 1"},
      {"stop:", "workers: {count: 2, emulate: {slow: [{ranks: [0, 7], factor: 5}]}}\nstop:",
       "job.yaml:15:50: workers.emulate.slow.0.ranks.1: rank 7 does not exist: 2 workers have "
       "ranks 0 to 1"},
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
        "job.yaml:15:14: compression: needs a map of contributions, weights, layers; it is a "
        "single value");
  check("", "", "{contributions: int8}",
        "job.yaml:15:30: compression.contributions: needs a map with a type, such as {type: int8}; "
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
        "version, and only in consistency.mode sync do all workers read every version: use none, "
        "bf16, fp16 or "
        "int8");
  check("", "", "{layers: [{names: dense_1, weights: {type: sign}}]}",
        "job.yaml:15:57: compression.layers.0.weights.type: top_k and sign send the changes from "
        "version to version, and only in consistency.mode sync do all workers read every version: "
        "use none, bf16, "
        "fp16 or int8");
  check("type: gradient", "type: elastic", "{contributions: {type: auto}, weights: {type: sign}}",
        "job.yaml:15:37: compression.contributions.type: only none goes with an elastic exchange, "
        "because it sends the workers' weights themselves and what a codec loses would stay "
        "lost\njob.yaml:15:60: compression.weights.type: top_k and sign send changes of weights, "
        "but in an elastic exchange the servers answer the centre itself: use none, bf16, fp16 or "
        "int8");
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

}  // namespace
}  // namespace leeway::bad_combinations
