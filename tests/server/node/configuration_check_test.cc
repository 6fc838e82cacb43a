// How a server checks the rule and the factors that an external program has brought.
#include "server/node/configuration_check.h"

#include <string>

#include "common/blocks.h"
#include "config/brought_update.h"
#include "config/job.h"
#include "config/length.h"
#include "config/shards.h"
#include "tests/catch.h"

namespace leeway::configuration_check {
namespace {

const char* const kRule = "{type: sgd, momentum: 0.9, learning_rate: 0.1}";
const char* const kExternal =
    "model: {type: external}\ndata: {type: external, batch_size: 1, examples: 100}\n"
    "exchange: {type: gradient}\n";

v1::TrainingJob JobOf(const std::string& parts) {
  const auto job = ParseJob("apiVersion: leeway/v1\nkind: TrainingJob\nmetadata: {name: x}\n" +
                                parts + "consistency: {mode: sync}\nstop: {epochs: 1}\n",
                            "job.yaml", {});
  INFO(job.status().message());
  REQUIRE(job.ok());
  return *job;
}

// Returns the configuration that the coordinator of the job would send.
v1::ConfigureRequest Configuration(const v1::TrainingJob& job) {
  v1::ConfigureRequest request;
  v1::TensorSpec& tensor = *request.mutable_schema()->add_tensors();
  tensor.set_name("weight");
  tensor.add_shape(100);
  request.mutable_schema()->set_total(100);
  request.mutable_schema()->set_trained(100);
  request.set_block_elements(
      BlockLayout::ForModel(100, ShardsOf(job), job.servers().block_bytes()).block_elements());
  *request.mutable_length() = ComputeLength(job, 100);
  request.add_servers("127.0.0.1:7000");
  request.add_local_servers();
  request.mutable_placement()->set_epoch(1);
  request.mutable_placement()->add_shards()->set_owner(0);
  request.set_run_dir("/run");
  request.set_load(true);
  return request;
}

std::string Refusal(const v1::ConfigureRequest& request, const v1::TrainingJob& job) {
  const std::string run_dir = "/run";
  const absl::Status status = CheckConfiguration(request, {job, 0, run_dir});
  if (status.ok()) return "none";
  CHECK(absl::IsInvalidArgument(status));
  return std::string(status.message());
}

TEST_CASE("a server without a rule takes the one that a worker has brought, and needs it") {
  const v1::TrainingJob job = JobOf(kExternal);
  v1::ConfigureRequest request = Configuration(job);
  CHECK(Refusal(request, job) ==
        "configuration: update: missing, and the job itself has no update");
  *request.mutable_update() = ResolveBroughtUpdate(*ParseUpdate(kRule)).value();
  CHECK(Refusal(request, job) == "none");
  request.mutable_schema()->mutable_tensors(0)->mutable_factors()->set_weight_decay(0);
  CHECK(Refusal(request, job) == "none");
  request.mutable_schema()->mutable_tensors(0)->mutable_factors()->set_weight_decay(-1);
  CHECK_THAT(Refusal(request, job), Catch::Contains("factors.weight_decay: must be at least 0"));
  request = Configuration(job);
  request.mutable_update()->mutable_sgd();
  CHECK(Refusal(request, job) == "configuration: update.learning_rate: required key is missing");
}

TEST_CASE("a server that came late has the rule from the job, and hears it again") {
  v1::TrainingJob job = JobOf(kExternal);
  *job.mutable_update() = ResolveBroughtUpdate(*ParseUpdate(kRule)).value();
  v1::ConfigureRequest request = Configuration(job);
  *request.mutable_update() = job.update();
  CHECK(Refusal(request, job) == "none");
  request.mutable_update()->set_learning_rate(0.2);
  CHECK(Refusal(request, job) ==
        "configuration: update: is {type: sgd, momentum: 0.9, learning_rate: 0.2}, but the job's "
        "update is "
        "{type: sgd, momentum: 0.9, learning_rate: 0.1}");
}

TEST_CASE("a server takes no rule and no factors in other jobs") {
  const std::string refused =
      "configuration: update: only external jobs with a gradient exchange may have it";
  const v1::TrainingJob layers = JobOf(
      "model: {layers: [{dense: {units: 1}}], loss: squared}\n"
      "data: {train: {type: csv, files: x}, batch_size: 1}\n"
      "exchange: {type: gradient}\nupdate: {type: sgd, learning_rate: 1}\n");
  v1::ConfigureRequest request = Configuration(layers);
  CHECK(Refusal(request, layers) == "none");
  *request.mutable_update() = layers.update();
  CHECK(Refusal(request, layers) == refused);
  request = Configuration(layers);
  request.mutable_schema()->mutable_tensors(0)->mutable_factors();
  CHECK(Refusal(request, layers) ==
        "configuration: schema.tensors.factors: only external jobs may have them");
  request = Configuration(layers);
  request.mutable_schema()->mutable_tensors(0)->set_begins_block(true);
  CHECK(Refusal(request, layers) ==
        "configuration: schema.tensors.begins_block: only external jobs may have it");
  const v1::TrainingJob delta = JobOf(
      "model: {type: external}\ndata: {type: external, batch_size: 1, examples: 100}\n"
      "exchange: {type: delta, local_steps: 1}\nupdate: {type: sgd, learning_rate: 1}\n");
  request = Configuration(delta);
  CHECK(Refusal(request, delta) == "none");
  *request.mutable_update() = delta.update();
  CHECK(Refusal(request, delta) == refused);
}

}  // namespace
}  // namespace leeway::configuration_check
