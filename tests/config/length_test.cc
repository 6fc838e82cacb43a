#include "config/length.h"

#include <limits>

#include "tests/catch.h"

namespace leeway::length {
namespace {

v1::TrainingJob Epochs(double epochs, uint32_t accumulation = 1) {
  v1::TrainingJob job;
  job.mutable_stop()->set_epochs(epochs);
  job.mutable_exchange()->mutable_gradient()->set_accumulation(accumulation);
  return job;
}

v1::TrainingJob Clocks(uint64_t clocks, uint32_t accumulation = 1) {
  v1::TrainingJob job = Epochs(1, accumulation);
  job.mutable_stop()->set_clocks(clocks);
  return job;
}

v1::Interval EveryEpochs(double epochs) {
  v1::Interval interval;
  interval.set_epochs(epochs);
  return interval;
}

v1::Interval EveryClocks(uint64_t clocks) {
  v1::Interval interval;
  interval.set_clocks(clocks);
  return interval;
}

TEST_CASE("a clock is as many steps as the exchange says") {
  v1::TrainingJob job;
  CHECK(StepsPerClock(job) == 1);
  job.mutable_exchange()->mutable_gradient()->set_accumulation(4);
  CHECK(StepsPerClock(job) == 4);
  job.mutable_exchange()->mutable_delta()->set_local_steps(20);
  CHECK(StepsPerClock(job) == 20);
  job.mutable_exchange()->mutable_elastic();
  CHECK(StepsPerClock(job) == 10);
}

TEST_CASE("epochs become steps, and the last clock may be short") {
  const v1::JobLength length = ComputeLength(Epochs(3, 20), 313);
  CHECK(length.steps_per_epoch() == 313);
  CHECK(length.steps() == 939);
  CHECK(length.steps_per_clock() == 20);
  CHECK(length.clocks() == 47);
  CHECK(ComputeLength(Epochs(0.5), 7).steps() == 4);
  CHECK(ComputeLength(Epochs(1e-9), 7).steps() == 1);
  CHECK(ComputeLength(Epochs(2), 0).steps() == 2);
}

TEST_CASE("an epoch is the longest worker's pass, in async as many batches as all have together") {
  v1::TrainingJob job = Epochs(1);
  const std::vector<uint64_t> steps = {10, 0, 3, 1};
  CHECK(StepsPerEpoch(job, steps) == 10);
  job.mutable_consistency()->set_mode(v1::CONSISTENCY_MODE_BOUNDED);
  CHECK(StepsPerEpoch(job, steps) == 10);
  job.mutable_consistency()->set_mode(v1::CONSISTENCY_MODE_ASYNC);
  CHECK(StepsPerEpoch(job, steps) == 4);
  CHECK(StepsPerEpoch(job, std::vector<uint64_t>(3, 7)) == 7);
  CHECK(StepsPerEpoch(job, {}) == 0);
  CHECK(StepsPerEpoch(job, std::vector<uint64_t>(2, 0)) == 0);
  CHECK(StepsPerEpoch(job, std::vector<uint64_t>(3, UINT64_MAX)) == 1000000000000000);
}

TEST_CASE("binary fractions do not add a step") {
  for (uint64_t steps_per_epoch = 10; steps_per_epoch <= 5000; steps_per_epoch += 10) {
    for (uint64_t tenths = 1; tenths < 50; ++tenths) {
      const auto length = ComputeLength(Epochs(static_cast<double>(tenths) / 10), steps_per_epoch);
      if (length.steps() != tenths * steps_per_epoch / 10) {
        FAIL_CHECK(tenths << " tenths of " << steps_per_epoch << ": " << length.steps());
      }
    }
  }
}

TEST_CASE("clocks become steps") {
  const v1::JobLength length = ComputeLength(Clocks(50, 4), 1000);
  CHECK(length.clocks() == 50);
  CHECK(length.steps() == 200);
}

TEST_CASE("intervals become clocks, at least one") {
  const v1::JobLength length = ComputeLength(Epochs(3, 20), 313);
  CHECK(IntervalClocks(EveryClocks(7), length) == 7);
  CHECK(IntervalClocks(EveryEpochs(1), length) == 16);
  CHECK(IntervalClocks(EveryEpochs(2), length) == 31);
  CHECK(IntervalClocks(EveryEpochs(0.001), length) == 1);
}

TEST_CASE("lengths beyond all measure stay at the largest") {
  const uint64_t most = std::numeric_limits<uint64_t>::max();
  const v1::JobLength length = ComputeLength(Clocks(most, 1000000), most);
  CHECK(length.steps() == 1000000000000000);
  CHECK(length.clocks() == 1000000000);
  CHECK(ComputeLength(Epochs(1e300), most).steps() == 1000000000000000);
  CHECK(IntervalClocks(EveryEpochs(std::numeric_limits<double>::infinity()), length) > 0);
  CHECK(ComputeLength(Epochs(std::numeric_limits<double>::quiet_NaN()), 10).steps() > 0);
}

TEST_CASE("a worker keeps state for elastic exchanges and for delta exchanges with slots") {
  v1::TrainingJob job = Epochs(1);
  CHECK_FALSE(KeepsWorkerState(job));
  v1::Update& optimizer = *job.mutable_exchange()->mutable_delta()->mutable_optimizer();
  optimizer.mutable_sgd();
  CHECK_FALSE(KeepsWorkerState(job));
  optimizer.mutable_sgd()->set_momentum(0.9);
  CHECK(KeepsWorkerState(job));
  optimizer.mutable_adamw();
  CHECK(KeepsWorkerState(job));
  optimizer.mutable_lion();
  CHECK(KeepsWorkerState(job));
  // A plugin's rule may have slots.
  optimizer.mutable_custom();
  CHECK(KeepsWorkerState(job));
  job.mutable_exchange()->mutable_elastic();
  CHECK(KeepsWorkerState(job));
  job.mutable_exchange()->mutable_delta()->mutable_optimizer()->mutable_sgd();
  CHECK_FALSE(KeepsWorkerState(job));
  job.mutable_exchange()->mutable_delta()->set_spread(true);
  CHECK(KeepsWorkerState(job));
}

TEST_CASE("a worker keeps the residual of compressed contributions, of any layer") {
  v1::TrainingJob job = Epochs(1);
  job.mutable_compression()->mutable_contributions()->mutable_none();
  job.mutable_compression()->mutable_weights()->mutable_top_k();
  CHECK_FALSE(KeepsWorkerState(job));
  job.mutable_compression()->add_layers()->mutable_contributions()->mutable_bf16();
  CHECK(KeepsWorkerState(job));
  job.mutable_compression()->clear_layers();
  job.mutable_compression()->mutable_contributions()->mutable_int8();
  CHECK(KeepsWorkerState(job));
}

TEST_CASE(
    "where all train together the job has so many batches, and never so many that they wrap") {
  const auto batches = [](v1::TrainingJob job, uint32_t workers) {
    job.mutable_consistency()->set_mode(v1::CONSISTENCY_MODE_ASYNC);
    job.mutable_workers()->set_count(workers);
    return JobBatches(job, ComputeLength(job, 10), 7);
  };
  CHECK(batches(Epochs(1.5), 3) == 11);
  CHECK(batches(Epochs(2), 3) == 14);
  CHECK(batches(Clocks(5, 4), 3) == 60);
  // 2^64 would overflow to 0, and the job would end before it begins.
  CHECK(batches(Clocks(uint64_t{1} << 29, 1 << 20), 1 << 15) == uint64_t{1} << 60);
  CHECK(batches(Epochs(1e300), 3) == uint64_t{1} << 60);
  CHECK(JobBatches(Epochs(2), ComputeLength(Epochs(2), 10), 7) == std::nullopt);
}

}  // namespace
TEST_CASE("A stop that lies in the past is refused, one that was not changed is where it ends") {
  for (const auto mode :
       {v1::CONSISTENCY_MODE_SYNC, v1::CONSISTENCY_MODE_BOUNDED, v1::CONSISTENCY_MODE_ASYNC}) {
    for (const uint32_t workers : {1u, 3u}) {
      const auto check = [&](v1::TrainingJob job, const v1::Interval& was, uint64_t clock) {
        job.mutable_consistency()->set_mode(mode);
        job.mutable_workers()->set_count(workers);
        return CheckStopAhead(was, job, ComputeLength(job, 10), clock).ok();
      };
      CHECK_FALSE(check(Clocks(9), EveryClocks(20), 10));
      CHECK_FALSE(check(Epochs(0.9), EveryEpochs(2), 10));
      CHECK_FALSE(check(Clocks(9), EveryEpochs(2), 10));
      CHECK(check(Clocks(10), EveryClocks(20), 10));
      CHECK(check(Epochs(1), EveryClocks(20), 10));
      CHECK(check(Clocks(30), EveryClocks(20), 20));
      // The last cut of a run outside of sync may be one clock behind its end.
      CHECK(check(Clocks(10), EveryClocks(10), 11));
    }
  }
}

}  // namespace leeway::length
