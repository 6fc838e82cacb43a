// Every mistake that the reader promises to name, and the exact lines that it prints.
#include <algorithm>
#include <string>

#include "tests/catch.h"
#include "tests/config/bad_job.h"
#include "tests/config/sample_job.h"

namespace leeway::bad_jobs {
namespace {

using testing::CheckAll;
using testing::ErrorOf;
using testing::Sample;

TEST_CASE("the sample job is good") { CHECK(ErrorOf(Sample()) == "no error"); }

TEST_CASE("a worker's device has a name that there is") {
  for (const char* device : {"auto", "cpu", "cuda", "cuda:0", "'cuda:63'"}) {
    CAPTURE(device);
    CHECK(ErrorOf(Sample("stop:", "workers: {device: " + std::string(device) + "}\nstop:")) ==
          "no error");
  }
  const std::string known = "must be auto, cpu, cuda or cuda:N with N from 0 to 63; it is ";
  CheckAll({{"stop:", "workers: {device: gpu}\nstop:",
             "job.yaml:15:19: workers.device: " + known + "'gpu'"},
            {"stop:", "workers: {device: cuda:64}\nstop:",
             "job.yaml:15:19: workers.device: " + known + "'cuda:64'"},
            {"stop:", "workers: {device: ''}\nstop:",
             "job.yaml:15:19: workers.device: must not be empty"}});
}

TEST_CASE("what a key holds reaches no terminal as it is, and is cut") {
  const std::string escaped = ErrorOf(Sample("stop:", "\"\\e[2Jx\\a\\n\\x80\": 1\nstop:"));
  CHECK_THAT(escaped, Catch::StartsWith("job.yaml:15:1: \\x1b[2Jx\\x07\\n\\xc2\\x80") &&
                          Catch::Contains(": unknown key; use one of "));
  for (const char c : escaped) CHECK((c == '\n' || (c >= ' ' && c <= '~')));
  const std::string endless = ErrorOf(Sample("stop:", std::string(100000, 'k') + ": 1\nstop:"));
  CHECK(endless.size() < 3000);
}

TEST_CASE("wrong, missing and contradicting keys are named with their place") {
  CheckAll({
      {"staleness", "stalenes",
       "job.yaml:13:30: consistency.stalenes: unknown key; did you mean 'staleness'?"},
      {"kind: ", "Kind: ", "job.yaml:2:1: Kind: unknown key; did you mean 'kind'?"},
      {"{name: sample}", "{name: sample, sed: 3}",
       "job.yaml:3:26: metadata.sed: unknown key; did you mean 'seed'?"},
      {"units: 10", "units: 10, wonderful: 3",
       "job.yaml:7:26: model.layers.1.dense.wonderful: unknown key; use one of units, bias, "
       "initializer, pointwise, deviation"},
      {"learning_rate: 0.1", "learning_rate: 0.1, beta1: 0.9",
       "job.yaml:14:41: update.beta1: does not go with type 'sgd'; it belongs to 'adam' and "
       "'adamw' and 'lion'"},
      {"type: gradient", "type: gradient, accumulaton: 2",
       "job.yaml:12:28: exchange.accumulaton: unknown key; did you mean 'accumulation'?"},
      {"stop:", "update: {type: sgd, learning_rate: 1}\nstop:",
       "job.yaml:15:1: update: duplicate key; the first is in line 14"},
      {"mode: bounded", "mode: bounded, mode: sync",
       "job.yaml:13:30: consistency.mode: duplicate key; the first is in line 13"},
      {"- flatten", "- flaten",
       "job.yaml:6:7: model.layers.0.flaten: unknown key; did you mean 'flatten'?"},
      {"flatten: {}", "flatten: {units: 3}",
       "job.yaml:6:17: model.layers.0.flatten.units: unknown key; no key is allowed here"},
      {"stop: {epochs: 2}\n", "", "job.yaml:1:1: stop: required key is missing"},
      {", learning_rate: 0.1", "", "job.yaml:14:1: update.learning_rate: required key is missing"},
      {"type: gradient", "",
       "job.yaml:12:11: exchange.type: required key is missing; one of gradient, delta, elastic"},
      {"- dense: {units: 10}", "- dense: {units: 10}\n      relu: {}",
       "job.yaml:8:7: model.layers.1.relu: does not go with 'dense'; give one of the two"},
      {"dense: {units: 10}", "name: empty",
       "job.yaml:7:7: model.layers.1: needs one of dense, conv2d, max_pool, avg_pool, "
       "relu, gelu, tanh, batch_norm, dropout, flatten, relu6, silu, global_avg_pool, "
       "pad_channels, layer_norm, group_norm, embedding, position_embedding, attention, "
       "tied_dense, factor_interaction, custom, sequence, residual, repeat, concat, recompute, "
       "mlp, lenet, resnet20, resnet18, resnet50, mobilenet_v2, gpt, logistic, softmax, "
       "factorization_machine"},
      {"epochs: 2", "epochs: 2, clocks: 5",
       "job.yaml:15:19: stop.clocks: does not go with 'epochs'; give one of the two"},
      {"epochs: 2", "", "job.yaml:15:7: stop: needs one of clocks, epochs"},
      {"type: gradient", "type: elasti",
       "job.yaml:12:18: exchange.type: unknown type 'elasti'; did you mean 'elastic'?"},
      {"mode: bounded", "mode: syncc",
       "job.yaml:13:21: consistency.mode: unknown value 'syncc'; did you mean 'sync'?"},
      {"loss: softmax_cross_entropy", "loss: hinge",
       "job.yaml:8:9: model.loss: unknown value 'hinge'; use one of softmax_cross_entropy, "
       "logistic, squared, custom"},
      {"sample}", "sample}\n<<: {stop: 3}",
       "job.yaml:4:1: <<: unknown key; use one of apiVersion, kind, metadata, model, data, "
       "exchange, consistency, update, servers, workers, stop, checkpoint, evaluation, limits, "
       "transport, "
       "compression, security, topology"},
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
       "job.yaml:7:22: model.layers.1.dense.units: needs a whole number; it is a string in quotes"},
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
       "job.yaml:7:32: model.layers.1.dense.bias: needs true or false; it is a string in quotes"},
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
       "unknown key; use one of type, momentum, nesterov, weight_decay, learning_rate, schedule, "
       "factors, scaling, average, steps_by_element"},
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
       "job.yaml:5:11: model.layers: required: a list of at least 1 element"},
      {"name: sample", "name: ''", "job.yaml:3:18: metadata.name: must not be empty"},
      {"name: sample", "name: [a]", "job.yaml:3:18: metadata.name: needs a string; it is a list"},
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
       "job.yaml:3:18: tags (!name) are not allowed; leave the tag out"},
      {"name: sample", "name: ! sample",
       "job.yaml:3:18: tags (!) are not allowed; leave the tag out"},
      {"{type: gradient}", "&x {type: gradient}",
       "job.yaml:12:11: anchors (&name) are not allowed; write the value out"},
      {"{type: gradient}", "!!map {type: gradient}",
       "job.yaml:12:11: tags (!name) are not allowed; leave the tag out"},
      {"stop:", "--- {}\nstop:",
       "job.yaml:15:1: the file has more than one YAML document; keep one"},
      {"stop: {epochs: 2}\n", "stop: {epochs: 2}\n---\n",
       "job.yaml:16:1: the file has more than one YAML document; keep one"},
      {"stop: {epochs: 2}", "stop: {epochs: 2",
       "job.yaml:15:7: not YAML: the '{' that opens here is never closed; add a '}'"},
      {"stop: {epochs: 2}", "stop: {epochs: 2}}",
       "job.yaml:15:18: not YAML: this bracket closes nothing; remove it"},
      {"kind: TrainingJob", "kind: 'TrainingJob",
       "job.yaml:2:7: the quote that opens here is never closed"},
      {"  batch_size: 32", "\tbatch_size: 32",
       "job.yaml:11:1: not YAML: a tab in the indentation; YAML allows spaces only"},
      {"metadata: {name: sample}", "? [a]\n: b", "job.yaml:3:4: a key must be a plain word"},
      {"metadata: {name: sample}", "~: b", "job.yaml:3:1: a key must be a plain word"},
      {"sample", "\"a\\0b\"", "job.yaml:3:18: a text contains a NUL byte"},
      {"stop: {epochs: 2}", "stop: " + std::string(70, '[') + std::string(70, ']'),
       "job.yaml:15:70: nested deeper than 64 levels"},
      {"kind: TrainingJob", " kind: TrainingJob",
       "job.yaml:2:6: not YAML: 'key: value' is not allowed here; indent the line like the keys "
       "beside it, or put a text that contains ': ' in quotes"},
  });
}

TEST_CASE("a mistake in brackets or tabs is named where it is, not where the parser noticed") {
  CheckAll({
      {"units: 10}", "units: 10",
       "job.yaml:7:14: not YAML: the '{' that opens here is never closed; add a '}'"},
      {"units: 10}", "units: [10, {}",
       "job.yaml:7:22: not YAML: the '[' that opens here is never closed; add a ']'"},
      {"units: 10}", "units: 10: 3}",
       "job.yaml:7:24: not YAML: this does not continue the '{' of column 14; add a ',' or '}', or "
       "put a text that contains ': ' in quotes"},
      {"units: 10}", "units: [10}",
       "job.yaml:7:25: not YAML: this bracket does not close the '[' of line 7, column 22; write "
       "']'"},
      {"sample}", "'{[', seed: \"]\" # {{\n",
       "job.yaml:3:11: not YAML: the '{' that opens here is never closed; add a '}'"},
      {"metadata: {name: sample}", "metadata:\n\tname: sample",
       "job.yaml:4:1: not YAML: a tab in the indentation; YAML allows spaces only"},
      {"metadata: {name: sample}", "metadata:\n  \t# fine\n  \tname: sample",
       "job.yaml:5:3: not YAML: a tab in the indentation; YAML allows spaces only"},
      {"    - dense: {units: 10}", "\t- dense: {units: 10}",
       "job.yaml:7:1: not YAML: a tab in the indentation; YAML allows spaces only"},
      {"metadata: {name: sample}", "metadata:\n  name: it's {[\n   a: |\n\t{ ' [",
       "job.yaml:5:5: not YAML: 'key: value' is not allowed here; indent the line like the keys "
       "beside it, or put a text that contains ': ' in quotes"},
  });
}

TEST_CASE("bytes that are no text are refused at their place") {
  CHECK(ErrorOf(Sample("sample", std::string("a\0b", 3))) == "job.yaml:3:19: this is a NUL byte");
  CHECK(ErrorOf(Sample("sample", "a\xff")) == "job.yaml:3:19: this byte is not UTF-8");
  // Half of a character, an overlong one, a surrogate, and a number above the last character.
  for (const char* bytes : {"\xc3", "\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80"}) {
    CHECK(ErrorOf(Sample("sample", bytes)) == "job.yaml:3:18: this byte is not UTF-8");
  }
}

TEST_CASE("a file without a job says so") {
  const std::string empty =
      "job.yaml: the file is empty; a job has at least model, data, update and stop";
  CHECK(ErrorOf("") == empty);
  CHECK(ErrorOf("# only a comment\n") == empty);
  CHECK(ErrorOf("job") ==
        "job.yaml:1:1: a job must be a map of keys, with at least model, data, update and stop");
}

TEST_CASE("a file beyond the limit is refused unread") {
  CHECK(ErrorOf(Sample() + "#" + std::string(1 << 20, ' ')) ==
        "job.yaml: has 1048926 bytes; a job may have at most 1048576");
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
}  // namespace leeway::bad_jobs
