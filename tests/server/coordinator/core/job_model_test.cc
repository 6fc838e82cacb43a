#include "server/coordinator/core/job_model.h"

#include "tests/catch.h"
#include "tests/server/coordinator/core/scenario.h"

namespace leeway::job_model {
namespace {

using Catch::Matchers::Contains;

TEST_CASE("job model: once its length is fixed no rank's data may grow") {
  JobModel model(TestOptions({}));
  v1::RegisterWorkerRequest request = WorkerRequest(0, 100);
  model.Take(request, "worker 0", 0);
  request.set_steps_per_epoch(11);
  CHECK(model.CheckSteps(request, "worker 0").ok());
  model.Fix(*model.Measure());
  const absl::Status grown = model.CheckSteps(request, "worker 0");
  CHECK(absl::IsFailedPrecondition(grown));
  CHECK_THAT(std::string(grown.message()), Contains("its data has changed"));
  request.set_steps_per_epoch(10);
  CHECK(model.CheckSteps(request, "worker 0").ok());
}

TEST_CASE("job model: in async mode an epoch is the mean pass, and who has no data is idle") {
  JobModel model(TestOptions({.workers = 3, .mode = v1::CONSISTENCY_MODE_ASYNC}));
  // Rank 2, a foreign client, does not report its steps.
  for (const auto& [rank, steps] : {std::pair(0u, 9u), {1u, 0u}}) {
    v1::RegisterWorkerRequest request = WorkerRequest(rank, 100 + rank);
    request.set_steps_per_epoch(steps);
    model.Take(request, "worker", rank);
  }
  CHECK_FALSE(model.IsIdle(1));
  model.Fix(*model.Measure());
  CHECK(model.length()->steps_per_epoch() == 5);
  CHECK(model.length()->total_clocks() == 3 * model.length()->clocks());
  CHECK_FALSE(model.IsIdle(0));
  CHECK(model.IsIdle(1));
  CHECK_FALSE(model.IsIdle(2));
  v1::RegisterWorkerRequest again = WorkerRequest(0, 103);
  again.set_steps_per_epoch(9);
  CHECK(model.CheckSteps(again, "worker 0").ok());
}

v1::RegisterWorkerRequest OnDevice(uint32_t rank, const std::string& device) {
  v1::RegisterWorkerRequest request = WorkerRequest(rank, 100 + rank);
  request.set_device(device);
  return request;
}

TEST_CASE("job model: with auto a rank stays on the device that its first life had") {
  CoordinatorOptions options = TestOptions({.workers = 2});
  options.job.mutable_workers()->set_device("auto");
  options.ranks.devices = {"", "cpu"};
  JobModel model(options);
  CHECK(model.CheckDevice(OnDevice(0, "cuda"), 0, "worker 0").ok());
  model.Take(OnDevice(0, "cuda"), "worker 0", 0);
  CHECK(model.devices() == std::vector<std::string>{"cuda", "cpu"});
  CHECK(model.CheckDevice(OnDevice(0, "cuda"), 0, "worker 0").ok());
  // A foreign client does not report its device.
  CHECK(model.CheckDevice(OnDevice(0, ""), 0, "worker 0").ok());
  for (const auto& [rank, other] : {std::pair(0u, "cpu"), {1u, "cuda"}}) {
    const absl::Status refused = model.CheckDevice(OnDevice(rank, other), rank, "worker");
    CHECK(absl::IsFailedPrecondition(refused));
    CHECK_THAT(std::string(refused.message()), Contains(std::string("computes on ") + other));
  }
}

TEST_CASE("job model: what a job names needs no memory of it") {
  for (const std::string device : {"cpu", "cuda", "cuda:1"}) {
    CoordinatorOptions options = TestOptions({.workers = 1});
    options.job.mutable_workers()->set_device(device);
    JobModel model(options);
    model.Take(OnDevice(0, "cuda"), "worker 0", 0);
    CHECK(model.devices().empty());
    CHECK(model.CheckDevice(OnDevice(0, "cpu"), 0, "worker 0").ok());
  }
}

TEST_CASE("job model: a device of no known kind is refused, escaped") {
  const JobModel model(TestOptions({}));
  const absl::Status refused = model.Check(OnDevice(0, "gpu\x1b[2J"), "worker 0");
  CHECK(absl::IsInvalidArgument(refused));
  CHECK_THAT(std::string(refused.message()), Contains("neither cpu nor cuda"));
  CHECK_THAT(std::string(refused.message()), !Contains("\x1b"));
}

}  // namespace
}  // namespace leeway::job_model
