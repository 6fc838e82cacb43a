#include "launcher/supervision/progress.h"

#include "tests/catch.h"

namespace leeway::progress {
namespace {

Time At(double seconds) { return Time{} + FromSeconds(seconds); }

v1::JobStatus TwoWorkers(uint64_t first, uint64_t second, uint64_t clocks) {
  v1::JobStatus status;
  status.set_state(v1::JOB_RUNNING);
  status.set_clocks(clocks);
  status.add_workers()->set_clock(first);
  status.add_workers()->set_clock(second);
  return status;
}

}  // namespace

TEST_CASE("The share that is done is the workers' mean clock over the job's") {
  CHECK(DoneShare(TwoWorkers(10, 30, 100)) == Approx(0.2));
  CHECK(DoneShare(TwoWorkers(10, 30, 0)) == 0);
  CHECK(DoneShare(TwoWorkers(300, 300, 100)) == 1);
  CHECK(DoneShare(v1::JobStatus()) == 0);
}

TEST_CASE("A finished job is done, whatever the workers said last") {
  v1::JobStatus status = TwoWorkers(98, 99, 100);
  status.set_state(v1::JOB_FINISHED);
  CHECK(DoneShare(status) == 1);
}

TEST_CASE("Rates add up running workers, and the loss is of those that have trained") {
  v1::JobStatus status = TwoWorkers(1, 1, 10);
  CHECK_FALSE(MeanLoss(status).has_value());
  for (int i = 0; i < 2; ++i) {
    auto* worker = status.mutable_workers(i);
    worker->set_state(i == 0 ? "running" : "lost");
    worker->set_samples_per_second(100);
    worker->set_examples(i == 0 ? 64 : 0);
    worker->set_train_loss(i == 0 ? 0.5 : 7);
  }
  CHECK(SamplesPerSecond(status) == 100);
  CHECK(*MeanLoss(status) == Approx(0.5));
  status.mutable_workers(0)->clear_train_loss();
  CHECK_FALSE(MeanLoss(status).has_value());
}

TEST_CASE("The time left follows from what moved, not from where a resumed job began") {
  EtaEstimator eta;
  CHECK_FALSE(eta.Seconds(100).has_value());
  eta.Add(At(0), 500);
  CHECK_FALSE(eta.Seconds(1000).has_value());
  eta.Add(At(10), 600);
  CHECK(*eta.Seconds(1000) == Approx(40));
  CHECK(*eta.Seconds(550) == 0);
}

TEST_CASE("The time left follows the last half minute") {
  EtaEstimator eta;
  for (int i = 0; i <= 100; ++i) eta.Add(At(i), i);
  for (int i = 1; i <= 40; ++i) eta.Add(At(100 + i), 100 + 10 * i);
  CHECK(*eta.Seconds(1000) == Approx(50));
}

TEST_CASE("The time left is unknown again after the job went back") {
  EtaEstimator eta;
  eta.Add(At(0), 10);
  eta.Add(At(1), 20);
  eta.Add(At(2), 5);
  CHECK_FALSE(eta.Seconds(100).has_value());
}

}  // namespace leeway::progress
