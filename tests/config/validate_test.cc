// Jobs that did not come through YAML.
#include "config/validate.h"

#include <limits>

#include "config/job.h"
#include "tests/catch.h"
#include "tests/config/sample_job.h"

namespace leeway {
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
  job.mutable_data()->clear_batch_size();
  CHECK(ErrorOf(job) ==
        "job: data.batch_size: required key is missing\n"
        "job: workers.count: must be at least 1; it is 0");

  job = Good();
  job.mutable_model()->add_layers();
  CHECK(ErrorOf(job) ==
        "job: model.layers.2: needs one of dense, conv2d, max_pool, avg_pool, relu, gelu, tanh, "
        "batch_norm, dropout, flatten");

  job = Good();
  job.mutable_exchange()->clear_type();
  CHECK(ErrorOf(job) ==
        "job: exchange.type: required key is missing; one of gradient, delta, elastic");

  job = Good();
  job.mutable_metadata()->set_name(std::string("a\0b", 3));
  CHECK(ErrorOf(job).find("metadata.name: holds a NUL byte") != std::string::npos);
}

TEST_CASE("an empty job names everything that it lacks") {
  const std::string error = ErrorOf(v1::TrainingJob());
  for (const char* key : {"apiVersion", "kind", "metadata", "model", "data", "exchange", "stop"}) {
    CHECK(error.find(std::string("job: ") + key + ": required key is missing") !=
          std::string::npos);
  }
}

TEST_CASE("an elastic exchange has an optimizer and no update") {
  v1::TrainingJob job = Good();
  job.mutable_exchange()->mutable_elastic()->set_alpha(0.3);
  CHECK(ErrorOf(job).find("job: exchange.optimizer: required key is missing") == 0);
  *job.mutable_exchange()->mutable_elastic()->mutable_optimizer() = job.update();
  CHECK(ErrorOf(job).find("job: update: an elastic exchange brings its own server rule") == 0);
  job.clear_update();
  CHECK(ErrorOf(job) == "");
}

TEST_CASE("a worker for each file is a matter of counts") {
  const std::string yaml =
      testing::Sample("{type: idx, images: a, labels: b}",
                      "{type: csv, files: [a, b]}\n  partition: {type: by_file}");
  CHECK(ParseJob(yaml, "job.yaml", {{"workers.count=2"}, {}}).ok());
  CHECK(ParseJob(yaml, "job.yaml", {{"workers.count=3"}, {}}).status().message() ==
        "job.yaml:11:21: data.partition.type: by_file gives each worker a file of its own: 3 "
        "workers, 2 files in data.train.files");
}

TEST_CASE("layers without a name are called by kind and place") {
  v1::TrainingJob job = Good();
  CHECK(LayerNames(job.model()) == std::vector<std::string>{"flatten_0", "dense_1"});
  job.mutable_model()->mutable_layers(1)->set_name("head");
  CHECK(LayerNames(job.model()) == std::vector<std::string>{"flatten_0", "head"});
}

}  // namespace
}  // namespace leeway
