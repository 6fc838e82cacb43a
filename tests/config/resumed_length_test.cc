// A run that is resumed with other numbers continues from the examples that were seen: its place in
// the epochs, its schedules, and its end.
#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include "common/first_step.h"
#include "common/update/schedule.h"
#include "config/length.h"
#include "tests/catch.h"

namespace leeway::resumed_length {
namespace {

constexpr uint64_t kExamples = 3823;
constexpr double kEpochs = 10;

// The numbers that decide how many examples a clock has.
struct Numbers {
  uint32_t workers = 3;
  uint64_t batch = 16;
  uint32_t accumulation = 1;
  // 0: a gradient exchange.
  uint32_t local_steps = 0;
  v1::ConsistencyMode mode = v1::CONSISTENCY_MODE_SYNC;
  std::string stop = "epochs";
};

v1::TrainingJob JobOf(const Numbers& numbers) {
  v1::TrainingJob job;
  job.mutable_workers()->set_count(numbers.workers);
  job.mutable_data()->set_batch_size(numbers.batch);
  job.mutable_data()->set_examples(kExamples);
  job.mutable_consistency()->set_mode(numbers.mode);
  if (numbers.local_steps > 0) {
    job.mutable_exchange()->mutable_delta()->set_local_steps(numbers.local_steps);
  } else {
    job.mutable_exchange()->mutable_gradient()->set_accumulation(numbers.accumulation);
  }
  if (numbers.stop == "epochs") {
    job.mutable_stop()->set_epochs(kEpochs);
  } else {
    job.mutable_stop()->set_clocks(900);
  }
  return job;
}

// Returns the clock at two thirds of a run of 3 workers with 16 examples a batch.
uint64_t MiddleOf(const v1::JobLength& length) { return length.clocks() * 2 / 3; }

double EpochAt(const v1::JobLength& length, uint64_t clock) {
  return static_cast<double>(FirstStep(length, clock)) /
         static_cast<double>(length.steps_per_epoch());
}

v1::JobLength Began(const Numbers& numbers) {
  const v1::TrainingJob job = JobOf(numbers);
  return ComputeLength(job, ExternalStepsPerEpoch(job));
}

v1::JobLength Resumed(const v1::JobLength& was, uint64_t clock, const Numbers& numbers) {
  const v1::TrainingJob job = JobOf(numbers);
  const uint64_t steps = ExternalStepsPerEpoch(job);
  return ComputeLength(job, steps, GoOnFrom(was, clock, job, steps));
}

std::vector<Numbers> Changes() {
  std::vector<Numbers> changes;
  for (const uint32_t workers : {1u, 2u, 3u, 5u, 64u}) {
    for (const uint64_t batch : {8u, 16u, 32u, 100u}) {
      for (const auto mode :
           {v1::CONSISTENCY_MODE_SYNC, v1::CONSISTENCY_MODE_BOUNDED, v1::CONSISTENCY_MODE_ASYNC}) {
        changes.push_back({.workers = workers, .batch = batch, .mode = mode});
      }
    }
  }
  changes.push_back({.accumulation = 4});
  changes.push_back({.local_steps = 20});
  changes.push_back({.workers = 2, .batch = 32, .local_steps = 500});
  return changes;
}

v1::Update Rate(v1::Schedule schedule) {
  v1::Update update;
  update.set_learning_rate(1);
  *update.mutable_schedule() = std::move(schedule);
  return update;
}

std::vector<v1::Schedule> Schedules() {
  v1::Schedule whole, over, clocks, warm;
  whole.mutable_cosine()->set_final_factor(0.1);
  over.mutable_cosine()->mutable_over()->set_epochs(9);
  clocks.mutable_cosine()->mutable_over()->set_clocks(2000);
  warm.mutable_warm_up()->set_epochs(9);
  return {whole, over, clocks, warm};
}

// By how much of an epoch a place may move: half a step of either run, and what the last batches of
// an epoch lack, which is less than a step of all workers.
double Tolerance(const v1::JobLength& was, const v1::JobLength& is) {
  return 1.0 / static_cast<double>(std::min(was.steps_per_epoch(), is.steps_per_epoch()));
}

// Returns the length of a clock in epochs.
double ClockOf(const v1::JobLength& length) {
  return static_cast<double>(length.steps_per_clock()) /
         static_cast<double>(length.steps_per_epoch());
}

}  // namespace

TEST_CASE("Resumed with other numbers, a run goes on from the examples that were seen") {
  for (const Numbers& before : Changes()) {
    const v1::JobLength was = Began(before);
    const uint64_t clock = MiddleOf(was);
    const double epoch = EpochAt(was, clock);
    for (const Numbers& after : Changes()) {
      const v1::JobLength is = Resumed(was, clock, after);
      CAPTURE(before.workers, before.batch, before.mode, before.local_steps, after.workers,
              after.batch, after.mode, after.local_steps, clock, is.ShortDebugString());
      const double tolerance = Tolerance(was, is);
      CHECK(std::abs(EpochAt(is, clock) - epoch) <= tolerance);
      // It ends after its epochs, neither at once nor later.
      CHECK(is.steps() == Began(after).steps());
      const uint64_t rest = is.steps() - FirstStep(is, clock);
      CHECK(is.clocks() == clock + (rest + is.steps_per_clock() - 1) / is.steps_per_clock());
      CHECK(FirstStep(is, is.clocks()) >= is.steps());
      CHECK(ClockOfStep(is, FirstStep(is, clock + 7) + is.steps_per_clock() - 1) == clock + 7);
    }
  }
}

TEST_CASE("Resumed with other numbers, a schedule goes on at the rate that it had") {
  for (const v1::Schedule& schedule : Schedules()) {
    const v1::Update update = Rate(schedule);
    for (const char* stop : {"epochs", "clocks"}) {
      for (Numbers before : Changes()) {
        before.stop = stop;
        const v1::JobLength was = Began(before);
        const uint64_t clock = MiddleOf(was);
        const float rate = Schedule::OverClocks(update, was, 1).LearningRate(clock);
        for (Numbers after : Changes()) {
          after.stop = stop;
          const v1::JobLength is = Resumed(was, clock, after);
          CAPTURE(schedule.ShortDebugString(), stop, before.workers, before.batch, before.mode,
                  after.workers, after.batch, after.mode, after.local_steps);
          // At time 0 a warm-up has already moved by one clock.
          const double tolerance = Tolerance(was, is) + ClockOf(was) + ClockOf(is);
          const float goes_on = Schedule::OverClocks(update, is, 1).LearningRate(clock);
          CHECK(std::abs(goes_on - rate) <= tolerance);
          const float local = Schedule::OverSteps(update, is, 1).LearningRate(FirstStep(is, clock));
          CHECK(std::abs(local - rate) <= tolerance);
        }
      }
    }
  }
}

TEST_CASE("Resumed with the same numbers, every clock has the step that it had") {
  for (const Numbers& numbers : Changes()) {
    const v1::JobLength was = Began(numbers);
    const v1::JobLength same = Resumed(was, MiddleOf(was), numbers);
    CHECK(same.SerializeAsString() == was.SerializeAsString());
    CHECK_FALSE(IsRenumbered(was, same));
    const v1::JobLength other = Resumed(was, MiddleOf(was), {.workers = 7, .batch = 5});
    CHECK(IsRenumbered(was, other));
    const uint64_t later = MiddleOf(was) + 3;
    CHECK(Resumed(other, later, {.workers = 7, .batch = 5}).SerializeAsString() ==
          other.SerializeAsString());
  }
}

TEST_CASE("A run that has ended goes on from its end, also after a short last clock") {
  const Numbers before = {.local_steps = 30};
  const v1::JobLength was = Began(before);
  REQUIRE(was.clocks() * 30 > was.steps());
  v1::TrainingJob longer = JobOf(before);
  longer.mutable_stop()->set_epochs(kEpochs + 5);
  const StartPoint start = GoOnFrom(was, was.clocks(), longer, was.steps_per_epoch());
  CHECK(start.clock == was.clocks());
  CHECK(start.step == was.steps());
  // There is nothing left to do.
  const v1::JobLength over = Resumed(was, was.clocks(), {.workers = 5});
  CHECK(over.clocks() == was.clocks());
  CHECK(CheckStopAhead(JobOf(before).stop(), JobOf({.workers = 5}), over, was.clocks()).ok());
}

TEST_CASE(
    "A stop in clocks counts all clocks of the run, and one that was passed lies in the past") {
  const v1::JobLength was = Began({.stop = "clocks"});
  v1::TrainingJob job = JobOf({.workers = 6, .stop = "clocks"});
  const uint64_t steps = ExternalStepsPerEpoch(job);
  const StartPoint start = GoOnFrom(was, 600, job, steps);
  CHECK(start.step == 300);
  CHECK(ComputeLength(job, steps, start).clocks() == 900);
  CHECK(ComputeLength(job, steps, start).steps() == 600);
  const v1::Interval stop = job.stop();
  job.mutable_stop()->set_clocks(500);
  CHECK(ComputeLength(job, steps, start).clocks() == 500);
  CHECK_FALSE(CheckStopAhead(stop, job, ComputeLength(job, steps, start), 600).ok());
  job.mutable_stop()->set_epochs(1);
  CHECK_FALSE(CheckStopAhead(stop, job, ComputeLength(job, steps, start), 600).ok());
}

}  // namespace leeway::resumed_length
