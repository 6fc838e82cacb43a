#include "config/overrides.h"

#include <string>
#include <vector>

#include <stdlib.h>

#include "config/job.h"
#include "tests/catch.h"
#include "tests/config/sample_job.h"

namespace leeway::overrides {
namespace {

using testing::Sample;

absl::StatusOr<v1::TrainingJob> Parse(const JobOverrides& overrides,
                                      const std::string& yaml = Sample()) {
  return ParseJob(yaml, "job.yaml", overrides);
}

v1::TrainingJob With(const std::vector<std::string>& sets) {
  const absl::StatusOr<v1::TrainingJob> job = Parse({sets, {}});
  INFO(job.status().ToString());
  REQUIRE(job.ok());
  return *job;
}

std::string ErrorOf(const JobOverrides& overrides) {
  const absl::StatusOr<v1::TrainingJob> job = Parse(overrides);
  return job.ok() ? "no error" : std::string(job.status().message());
}

TEST_CASE("defaults yield to the file, that to the environment, and that to --set") {
  const std::pair<std::string, std::string> variable = {"LEEWAY__WORKERS__COUNT", "3"};
  const std::string file = Sample("stop:", "workers: {count: 2}\nstop:");
  CHECK(Parse({})->workers().count() == 1);
  CHECK(Parse({}, file)->workers().count() == 2);
  CHECK(Parse({{}, {variable}}, file)->workers().count() == 3);
  CHECK(Parse({{"workers.count=4"}, {variable}}, file)->workers().count() == 4);
  CHECK(Parse({{"workers.count=4", "workers.count=5"}, {variable}}, file)->workers().count() == 5);
}

TEST_CASE("an override reaches into maps and lists, and brings its own") {
  CHECK(With({"model.layers.1.dense.units=20"}).model().layers(1).dense().units() == 20);
  CHECK(With({"limits.lease_seconds=2.5"}).limits().lease_seconds() == 2.5);
}

TEST_CASE("a map or list given as a whole replaces what was there") {
  const v1::TrainingJob job =
      With({"exchange={type: delta, local_steps: 5, optimizer: {type: sgd, learning_rate: 1}}",
            "model.layers=[{flatten: {}}, {dense: {units: 3}}, {relu: {}}]"});
  CHECK(job.exchange().delta().local_steps() == 5);
  CHECK(job.model().layers_size() == 3);
}

TEST_CASE("a type set from outside switches the member and keeps the keys that still apply") {
  const v1::TrainingJob job = With({"update.type=adam"});
  CHECK(job.update().has_adam());
  CHECK(job.update().learning_rate() == 0.1);
  CHECK(With({"exchange.type=elastic"}).exchange().elastic().optimizer().learning_rate() == 0.1);
  CHECK(ErrorOf({{"exchange.accumulation=2", "exchange.type=elastic"}, {}}) ==
        "--set exchange.accumulation=2: does not go with type 'elastic', which --set "
        "exchange.type=elastic chose; it belongs to 'gradient'");
}

TEST_CASE("keys that a type needs or refuses are blamed on the override that chose the type") {
  CHECK(ErrorOf({{"exchange.type=delta"}, {}}) ==
        "--set exchange.type=delta: exchange.local_steps: required key is missing\n"
        "--set exchange.type=delta: exchange.optimizer: required key is missing");
  CHECK(ErrorOf({{}, {{"LEEWAY__DATA__TRAIN__TYPE", "libsvm"}}}) ==
        "LEEWAY__DATA__TRAIN__TYPE: data.train.files: required: a list of at least 1 element\n"
        "LEEWAY__DATA__TRAIN__TYPE: data.train.features: required key is missing\n"
        "job.yaml:10:22: data.train.images: does not go with type 'libsvm', which "
        "LEEWAY__DATA__TRAIN__TYPE chose; it belongs to 'idx'\n"
        "job.yaml:10:33: data.train.labels: does not go with type 'libsvm', which "
        "LEEWAY__DATA__TRAIN__TYPE chose; it belongs to 'idx' and 'cifar100' and 'numpy'");
  CHECK(ErrorOf({{"consistency={}", "consistency.mode=bounded"}, {}}) ==
        "--set consistency.mode=bounded: consistency.staleness: required key is missing with mode "
        "bounded: say how many clocks a worker may be ahead of the slowest, such as staleness: 3");
}

TEST_CASE("one member of a choice takes the place of the other") {
  CHECK(With({"stop.clocks=100"}).stop().clocks() == 100);
  CHECK(With({"model.layers.0.relu={}"}).model().layers(0).has_relu());
  CHECK(ErrorOf({{"stop={clocks: 1, epochs: 2}"}, {}}) ==
        "--set stop={clocks: 1, epochs: 2}: stop.epochs: does not go with 'clocks'; give one of "
        "the two");
}

TEST_CASE("a key without a value is removed, and its default holds") {
  const v1::TrainingJob plain = With({});
  REQUIRE(plain.has_update());
  CHECK(With({"update.momentum=0.9", "update.momentum="}).SerializeAsString() ==
        plain.SerializeAsString());
  CHECK(With({"evaluation.early_stop="}).SerializeAsString() == plain.SerializeAsString());
  // The elastic exchange brings its own rule, and refuses any other.
  const std::string elastic =
      "exchange={type: elastic, every: 4, alpha: 0.1, optimizer: {type: sgd, learning_rate: 0.1}}";
  CHECK(ErrorOf({{elastic}, {}}) != "no error");
  CHECK(With({elastic, "update="}).exchange().has_elastic());
  CHECK(With({"model.layers.1.dense.units=3", "model.layers.1.dense.bias="})
            .model()
            .layers(1)
            .dense()
            .units() == 3);
  CHECK(ErrorOf({{"updat="}, {}}) == "--set updat=: unknown key, so it cannot be removed");
  CHECK(ErrorOf({{"Update="}, {}}) == "--set Update=: unknown key, so it cannot be removed");
  CHECK(ErrorOf({{"update.schedule.evry="}, {}}) ==
        "--set update.schedule.evry=: unknown key, so it cannot be removed");
  CHECK(ErrorOf({{"model.layers.0="}, {}}) ==
        "--set model.layers.0=: an element of a list cannot be removed; set the whole list");
  CHECK(ErrorOf({{"model.layers.7.dense="}, {}}) ==
        "--set model.layers.7.dense=: 'model.layers' is a list of 2 and has no element '7'");
}

TEST_CASE("an error in an override begins with the override") {
  CHECK(ErrorOf({{"consistency.stalenes=3"}, {}}) ==
        "--set consistency.stalenes=3: unknown key; did you mean 'staleness'?");
  CHECK(ErrorOf({{"consistency.staleness=3.5"}, {}}) ==
        "--set consistency.staleness=3.5: needs a whole number in decimal digits; it is '3.5'");
  CHECK(ErrorOf({{"update={type: sgd, lerning_rate: 1, learning_rate: 1}"}, {}}) ==
        "--set update={type: sgd, lerning_rate: 1, learning_rate: 1}: update.lerning_rate: unknown "
        "key; did you mean 'learning_rate'?");
  CHECK(ErrorOf({{"stop"}, {}}) == "--set stop: needs the form key=value, such as stop.epochs=3");
  CHECK(ErrorOf({{"=3"}, {}}) == "--set =3: names an empty key");
  CHECK(ErrorOf({{"stop..epochs=3"}, {}}) == "--set stop..epochs=3: names an empty key");
  CHECK(ErrorOf({{}, {{"LEEWAY__STOP__EPOCHS", ""}}}) ==
        "LEEWAY__STOP__EPOCHS: needs a number; it is empty");
  CHECK(ErrorOf({{"stop.epochs=[1"}, {}}) ==
        "--set stop.epochs=[1: not YAML: the '[' that opens here is never closed; add a ']'");
  CHECK(ErrorOf({{"metadata.name.first=a"}, {}}) ==
        "--set metadata.name.first=a: 'metadata.name' is a single value and has no 'first'");
  CHECK(ErrorOf({{"model.layers.2.dense.units=3"}, {}}) ==
        "--set model.layers.2.dense.units=3: 'model.layers' is a list of 2 and has no element '2'");
  CHECK(ErrorOf({{"Stop.epochs=3"}, {}}) ==
        "--set Stop.epochs=3: Stop: unknown key; did you mean 'stop'?");
}

TEST_CASE("variables name keys in any case, with two underscores between") {
  const JobOverrides overrides = {{},
                                  {{"LEEWAY__APIVERSION", "leeway/v1"},
                                   {"LEEWAY__DATA__BATCH_SIZE", "64"},
                                   {"LEEWAY__MODEL__LAYERS__1__DENSE__UNITS", "7"}}};
  const absl::StatusOr<v1::TrainingJob> job = Parse(overrides);
  REQUIRE(job.status().ToString() == "OK");
  CHECK(job->data().batch_size() == 64);
  CHECK(job->model().layers(1).dense().units() == 7);
  CHECK(ErrorOf({{}, {{"LEEWAY__CONSISTENCY__STALENES", "3"}}}) ==
        "LEEWAY__CONSISTENCY__STALENES: unknown key; did you mean 'staleness'?");
  CHECK(ErrorOf({{}, {{"LEEWAY__", "3"}}}) == "LEEWAY__: names an empty key");
}

TEST_CASE("only variables with two underscores are overrides") {
  setenv("LEEWAY_DATA", "/data", 1);
  setenv("LEEWAY__STOP__EPOCHS", "3=4", 1);
  const auto found = EnvironmentOverrides();
  unsetenv("LEEWAY__STOP__EPOCHS");
  unsetenv("LEEWAY_DATA");
  REQUIRE(found.size() == 1);
  CHECK(found[0].first == "LEEWAY__STOP__EPOCHS");
  CHECK(found[0].second == "3=4");
}

TEST_CASE("hostile overrides are answered") {
  const std::string deep(100000, '[');
  for (const std::string& set : std::vector<std::string>{
           std::string("\xff=1"), std::string("a\0b=1", 5), "a=" + deep, deep + "=1",
           std::string(100000, '.') + "=1", "stop=\xff",
           std::string("model.layers.99999999999999=1"), std::string("model.layers.-1=1"),
           std::string("stop=&a 3"), std::string("stop=*a")}) {
    CHECK(Parse({{set}, {}}).status().code() == absl::StatusCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace leeway::overrides
