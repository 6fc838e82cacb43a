#include "run/steps.h"

#include "config/length.h"
#include "tests/catch.h"

namespace leeway::steps {
namespace {

v1::TrainingJob Job(uint32_t workers, uint64_t accumulation, v1::ConsistencyMode mode) {
  v1::TrainingJob job;
  job.mutable_workers()->set_count(workers);
  job.mutable_exchange()->mutable_gradient()->set_accumulation(accumulation);
  job.mutable_consistency()->set_mode(mode);
  return job;
}

using Steps = std::vector<uint64_t>;

}  // namespace

// Workers count in this way (Trainer::NextSpan): every clock has steps_per_clock steps, and the
// last one has what is left.
TEST_CASE("Steps of clocks are what workers have made, clock by clock") {
  for (const uint32_t workers : {1u, 3u, 8u}) {
    for (const uint64_t accumulation : {1u, 5u, 7u}) {
      for (const auto mode :
           {v1::CONSISTENCY_MODE_SYNC, v1::CONSISTENCY_MODE_BOUNDED, v1::CONSISTENCY_MODE_ASYNC}) {
        v1::TrainingJob job = Job(workers, accumulation, mode);
        job.mutable_stop()->set_epochs(3);
        const v1::JobLength length = ComputeLength(job, 11);
        const bool own = length.total_clocks() == 0;
        const uint64_t clocks_max = own ? length.clocks() : 2 * length.clocks();
        uint64_t steps = 0;
        for (uint64_t clock = 0; clock <= clocks_max; ++clock) {
          CHECK(*StepsOfClocks(job, 11, Steps(workers, clock)) == Steps(workers, steps));
          steps += own ? std::min(accumulation, length.steps() - steps) : accumulation;
        }
      }
    }
  }
}

TEST_CASE("Steps of clocks are absent where clocks do not tell") {
  const Steps clocks = {4, 4};
  v1::TrainingJob job = Job(2, 3, v1::CONSISTENCY_MODE_SYNC);
  job.mutable_stop()->set_epochs(1);
  CHECK_FALSE(StepsOfClocks(job, 0, clocks).has_value());
  job.mutable_stop()->set_clocks(9);
  CHECK(*StepsOfClocks(job, 0, clocks) == Steps{12, 12});
  job.mutable_consistency()->set_backup_workers(1);
  CHECK_FALSE(StepsOfClocks(job, 0, clocks).has_value());
  job.mutable_consistency()->clear_backup_workers();
  job.mutable_data()->set_assignment(v1::ASSIGNMENT_LEASED);
  CHECK_FALSE(StepsOfClocks(job, 0, clocks).has_value());
}

TEST_CASE("Leased batches count but for those that are open") {
  v1::DataProgress data;
  data.set_next(100);
  CHECK(BatchesOf(data) == 100);
  data.add_open()->set_count(7);
  data.add_open()->set_count(1);
  CHECK(BatchesOf(data) == 92);
}

}  // namespace leeway::steps
