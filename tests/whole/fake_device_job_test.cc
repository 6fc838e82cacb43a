// Whole jobs whose workers compute on a device with memory of its own, where work runs late and in
// any order.
#include <cmath>

#include "common/retry_hint.h"
#include "tests/whole/job_rig.h"
#include "tests/worker/device/fake_device.h"
#include "worker/device/make_backend.h"

namespace leeway::fake_device_job {
namespace {

using testing::DigitsJob;
using testing::FakeDevice;
using testing::JobResult;
using testing::JobRig;
using testing::MustTrain;

JobResult OnDevices(const v1::TrainingJob& job, uint64_t seed) {
  JobRig rig(job);
  rig.make_backend = [seed](uint32_t rank) -> absl::StatusOr<std::unique_ptr<Backend>> {
    return FakeDevice::Make({.seed = 100 * seed + rank});
  };
  return MustTrain(rig);
}

// An elastic exchange has no update on the servers, and --set cannot remove the key.
void MakeElastic(v1::TrainingJob& job) {
  v1::ElasticExchange& elastic = *job.mutable_exchange()->mutable_elastic();
  elastic.set_alpha(0.2);
  elastic.set_every(4);
  *elastic.mutable_optimizer() = job.update();
  job.clear_update();
}

// Checks the job with this exchange, with this number of seeds of the devices' schedulers.
void CheckBits(const std::string& exchange, uint64_t seeds) {
  std::vector<std::string> sets = {"stop.clocks=8"};
  const bool elastic = exchange == "elastic";
  const bool local = exchange.find("local_steps") != std::string::npos;
  if (!elastic) sets.push_back(exchange);
  if (local) sets.emplace_back("update={type: sgd, learning_rate: 1}");
  v1::TrainingJob job = DigitsJob(sets);
  if (elastic) MakeElastic(job);
  JobRig cpu(job);
  const std::string expected = MustTrain(cpu).sha256;
  for (uint64_t seed = 0; seed < seeds; ++seed) {
    CAPTURE(exchange, seed);
    REQUIRE(OnDevices(job, seed).sha256 == expected);
  }
}

std::string AnyExchange() {
  const std::string optimizer = "optimizer: {type: sgd, learning_rate: 0.05, momentum: 0.9}";
  return GENERATE_COPY(
      std::string("exchange={type: gradient}"),
      std::string("exchange={type: gradient, accumulation: 3}"),
      std::string("exchange={type: gradient, on_bad_gradient: skip, max_norm: 0.5}"),
      "exchange={type: delta, local_steps: 4, " + optimizer + "}",
      "exchange={type: delta, local_steps: 4, spread: true, " + optimizer + "}",
      std::string("elastic"));
}

// Every exchange is tested, because each has events of its own. A few seeds suffice, because a
// missing event shows in most schedules (mistakes_test), and a job takes half a second. The nightly
// test has ten times as many seeds.
TEST_CASE("Sync jobs on devices have the bits that they have on CPUs") {
  CheckBits(AnyExchange(), 2);
}

TEST_CASE("Sync jobs on devices have those bits with 20 seeds", "[.nightly]") {
  CheckBits(AnyExchange(), 20);
}

// A module whose GPU is the host: the real backend and its kernels run behind the module's
// interface.
absl::StatusOr<std::unique_ptr<Backend>> ThroughModule(const std::string& device) {
  v1::Workers workers;
  workers.set_device(device);
  auto chosen = ChooseBackend(
      workers, 0,
      {.driver = "libc.so.6", .modules = {LEEWAY_FAKE_MODULES "/libfake_module_good.so"}});
  if (!chosen.ok()) return chosen.status();
  return std::move(chosen->backend);
}

TEST_CASE("A job trains through a module as it does on CPUs, and twice with the same bits") {
  // The bias before a batch norm has no gradient except for rounding. Adam would turn the rounding,
  // which differs between CPU and device, into whole steps: its epsilon is well above it.
  const std::string exchange =
      GENERATE(as<std::string>(), "exchange={type: gradient}",
               "exchange={type: delta, local_steps: 4, "
               "optimizer: {type: adam, learning_rate: 0.002, epsilon: 0.001}}");
  std::vector<std::string> sets = {"stop.clocks=8", exchange};
  if (exchange.find("delta") != std::string::npos) {
    sets.emplace_back("update={type: sgd, learning_rate: 1}");
  }
  const v1::TrainingJob job = DigitsJob(sets);
  JobRig cpu(job);
  const std::vector<float> expected = MustTrain(cpu).weights;
  const auto train = [&job] {
    JobRig rig(job);
    rig.make_backend = [](uint32_t) { return ThroughModule("cuda:0"); };
    return MustTrain(rig);
  };
  const JobResult first = train();
  REQUIRE(first.weights.size() == expected.size());
  double difference = 0, size = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    difference += std::pow(first.weights[i] - expected[i], 2);
    size += std::pow(expected[i], 2);
  }
  CAPTURE(exchange);
  CHECK(difference < 1e-6 * size);
  CHECK(train().sha256 == first.sha256);
}

TEST_CASE("A worker that cannot have its device is started again only where that helps") {
  // An error before the registration ends a worker for good unless the error is retryable.
  const auto helps = [](const std::string& device) {
    return IsRetryable(ThroughModule(device).status().code());
  };
  CHECK(helps("cuda:1"));        // Busy.
  CHECK_FALSE(helps("cuda:2"));  // Not enough memory left.
  CHECK_FALSE(helps("cuda:3"));  // Too old.
  CHECK_FALSE(helps("cuda:9"));  // Does not exist.
}

TEST_CASE("A worker whose device has failed is to be started anew") {
  CHECK(ExitOf(absl::InternalError("Gemm: the device has failed")) == WorkerExit::kRestart);
}

}  // namespace
}  // namespace leeway::fake_device_job
