// A whole worker with a fake coordinator and fake servers.
#pragma once

#include <atomic>
#include <future>
#include <limits>
#include <map>
#include <string>

#include "common/blocks.h"
#include "common/interval_set.h"
#include "common/mutex.h"
#include "config/job.h"
#include "config/length.h"
#include "tests/catch.h"
#include "tests/client/fake_coordinator.h"
#include "tests/client/fake_servers.h"
#include "worker/worker.h"

namespace leeway::testing {

// A job with ten steps an epoch, and a linear model of 4 features and 2 classes.
inline constexpr char kJob[] = R"(
apiVersion: leeway/v1
kind: TrainingJob
metadata: {name: test, seed: 3}
model: {layers: [{dense: {units: 2}}], loss: softmax_cross_entropy}
data:
  train: {type: generator, examples: 80, shape: [4], noise: 0.1}
  test: {type: generator, examples: 50, shape: [4], noise: 0.1, split: 1}
  batch_size: 8
exchange: {type: gradient}
consistency: {mode: sync}
update: {type: sgd, learning_rate: 0.1}
stop: {clocks: 6}
limits: {lease_seconds: 0.5}
)";
inline constexpr uint64_t kTotal = 10;

struct Rig {
  explicit Rig(std::vector<std::string> sets = {}) {
    auto parsed = ParseJob(kJob, "test.yaml", {.sets = std::move(sets), .environment = {}});
    INFO(parsed.status());
    REQUIRE(parsed.ok());
    model = std::make_shared<FakeModel>(*BlockLayout::FromWire(kTotal, 2, 4));
    model->needs_initialize = true;
    auto& reply = coordinator.registration;
    *reply.mutable_job() = *parsed;
    reply.set_job_id(7);
    reply.set_incarnation(1);
    reply.add_servers("a:1");
    reply.add_servers("b:2");
    reply.mutable_schema()->set_total(kTotal);
    reply.mutable_schema()->set_trained(kTotal);
    reply.set_block_elements(4);
    *reply.mutable_length() = ComputeLength(*parsed, 10);
  }

  WorkerEnd Run() {
    WorkerOptions options;
    options.coordinator = coordinator.address();
    options.rank = coordinator.registration.rank();
    options.data_dir = "/nonexistent";
    options.nonce = 1;
    options.start_within = start_within;
    options.transport = testing::Reach(model);
    options.sleep = [this](Duration pause) { slept += pause; };
    return RunWorker(options);
  }

  Duration start_within = WorkerOptions().start_within;

  int Sent(const std::string& method) const {
    int count = 0;
    for (const FakeRequest& request : model->requests()) count += request.method == method;
    return count;
  }

  FakeCoordinator coordinator;
  std::shared_ptr<FakeModel> model;
  Duration slept{};
};

}  // namespace leeway::testing
