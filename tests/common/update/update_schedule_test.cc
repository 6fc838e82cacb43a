#include "common/update/schedule.h"
#include "tests/catch.h"

namespace leeway::update_schedule {
namespace {

// 10 steps an epoch, 4 steps a clock, 10 epochs: 2.5 clocks an epoch.
v1::JobLength Length() {
  v1::JobLength length;
  length.set_steps_per_epoch(10);
  length.set_steps_per_clock(4);
  length.set_steps(100);
  length.set_clocks(25);
  return length;
}

v1::Update Base() {
  v1::Update update;
  update.set_learning_rate(0.8);
  return update;
}

TEST_CASE("without a schedule, and with a constant one, the learning rate stays") {
  v1::Update update = Base();
  REQUIRE(Schedule::OverClocks(update, Length(), 4).LearningRate(1000) == 0.8f);
  update.mutable_schedule()->mutable_constant();
  REQUIRE(Schedule::OverSteps(update, Length(), 4).LearningRate(0) == 0.8f);
}

TEST_CASE("a step schedule multiplies after each interval, given in clocks or in epochs") {
  v1::Update update = Base();
  v1::StepSchedule& step = *update.mutable_schedule()->mutable_step();
  step.set_factor(0.5);
  step.mutable_every()->set_clocks(3);
  const Schedule by_clocks = Schedule::OverClocks(update, Length(), 4);
  REQUIRE(by_clocks.LearningRate(2) == 0.8f);
  REQUIRE(by_clocks.LearningRate(3) == 0.4f);
  REQUIRE(by_clocks.LearningRate(6) == 0.2f);
  // A clock is 4 local steps.
  const Schedule local = Schedule::OverSteps(update, Length(), 4);
  REQUIRE(local.LearningRate(11) == 0.8f);
  REQUIRE(local.LearningRate(12) == 0.4f);

  step.mutable_every()->set_epochs(1);
  const Schedule by_epochs = Schedule::OverClocks(update, Length(), 4);
  REQUIRE(by_epochs.LearningRate(2) == 0.8f);
  REQUIRE(by_epochs.LearningRate(3) == 0.4f);
  REQUIRE(by_epochs.LearningRate(4) == 0.4f);
  REQUIRE(by_epochs.LearningRate(5) == 0.2f);
}

TEST_CASE("rounding of a product does not delay a step by a clock") {
  v1::JobLength length;
  length.set_steps_per_epoch(25);
  length.set_steps_per_clock(1);
  v1::Update update = Base();
  update.mutable_schedule()->mutable_step()->set_factor(0.5);
  // 2.2 * 25 is above 55 in binary.
  update.mutable_schedule()->mutable_step()->mutable_every()->set_epochs(2.2);
  REQUIRE(Schedule::OverClocks(update, length, 4).LearningRate(55) == 0.4f);
}

TEST_CASE(
    "a cosine schedule falls to its final factor over the run, or over its length, and stays") {
  v1::Update update = Base();
  update.mutable_schedule()->mutable_cosine()->set_final_factor(0.1);
  const Schedule run = Schedule::OverSteps(update, Length(), 4);
  REQUIRE(run.LearningRate(0) == 0.8f);
  REQUIRE(run.LearningRate(50) == Approx(0.8 * 0.55));
  REQUIRE(run.LearningRate(100) == Approx(0.08));
  REQUIRE(run.LearningRate(500) == Approx(0.08));
  update.mutable_schedule()->mutable_cosine()->mutable_over()->set_epochs(4);
  const Schedule over = Schedule::OverClocks(update, Length(), 4);
  REQUIRE(over.LearningRate(5) == Approx(0.8 * 0.55));
  REQUIRE(over.LearningRate(10) == Approx(0.08));
}

TEST_CASE("warm-up rises linearly to the schedule beneath it") {
  v1::Update update = Base();
  update.mutable_schedule()->mutable_warm_up()->set_clocks(4);
  const Schedule constant = Schedule::OverClocks(update, Length(), 4);
  REQUIRE(constant.LearningRate(0) == 0.2f);
  REQUIRE(constant.LearningRate(1) == 0.4f);
  REQUIRE(constant.LearningRate(3) == 0.8f);
  REQUIRE(constant.LearningRate(4) == 0.8f);
  update.mutable_schedule()->mutable_step()->set_factor(0.5);
  update.mutable_schedule()->mutable_step()->mutable_every()->set_clocks(2);
  const Schedule step = Schedule::OverClocks(update, Length(), 4);
  REQUIRE(step.LearningRate(2) == Approx(0.8 * 0.75 * 0.5));
  REQUIRE(step.LearningRate(4) == Approx(0.8 * 0.25));
}

TEST_CASE("a job length of zeros gives a finite learning rate") {
  v1::Update update = Base();
  update.mutable_schedule()->mutable_cosine();
  update.mutable_schedule()->mutable_warm_up()->set_epochs(1);
  REQUIRE(Schedule::OverClocks(update, v1::JobLength(), 4).LearningRate(0) == 0.8f);
}

TEST_CASE("a scaled rate is that of one worker times their number, or its square root") {
  v1::Update update = Base();
  const auto rate = [&](v1::RateScaling scaling, uint32_t workers) {
    update.set_scaling(scaling);
    return Schedule::OverClocks(update, Length(), workers).LearningRate(7);
  };
  CHECK(rate(v1::RATE_SCALING_NONE, 4) == 0.8f);
  CHECK(rate(v1::RATE_SCALING_LINEAR, 4) == 3.2f);
  CHECK(rate(v1::RATE_SCALING_SQUARE_ROOT, 4) == 1.6f);
  CHECK(rate(v1::RATE_SCALING_LINEAR, 1) == 0.8f);
  CHECK(Schedule::OverSteps(update, Length(), 4).LearningRate(0) == 3.2f);
}

TEST_CASE("with scaling a warm-up rises from the rate of one worker, and so leaves one worker's") {
  v1::Update update = Base();
  update.mutable_schedule()->mutable_warm_up()->set_clocks(4);
  update.set_scaling(v1::RATE_SCALING_LINEAR);
  const Schedule four = Schedule::OverClocks(update, Length(), 4);
  // 0.8 (1 + 3 t / 4).
  CHECK(four.LearningRate(0) == 0.8f);
  CHECK(four.LearningRate(1) == Approx(1.4));
  CHECK(four.LearningRate(3) == Approx(2.6));
  CHECK(four.LearningRate(4) == 3.2f);
  CHECK(four.LearningRate(100) == 3.2f);
  CHECK(Schedule::OverClocks(update, Length(), 1).LearningRate(0) == 0.8f);
  // A clock is 4 local steps.
  CHECK(Schedule::OverSteps(update, Length(), 4).LearningRate(8) == Approx(2.0));
  update.set_scaling(v1::RATE_SCALING_SQUARE_ROOT);
  CHECK(Schedule::OverClocks(update, Length(), 4).LearningRate(0) == 0.8f);
  CHECK(Schedule::OverClocks(update, Length(), 4).LearningRate(2) == Approx(1.2));
  // The schedule's own factor comes on top.
  update.mutable_schedule()->mutable_step()->set_factor(0.5);
  update.mutable_schedule()->mutable_step()->mutable_every()->set_clocks(2);
  CHECK(Schedule::OverClocks(update, Length(), 4).LearningRate(2) == Approx(0.6));
}

TEST_CASE("each of W contributions has a W-th of the rate, and with linear scaling all of it") {
  v1::Update update = Base();
  update.mutable_schedule()->mutable_step()->set_factor(0.5);
  update.mutable_schedule()->mutable_step()->mutable_every()->set_clocks(2);
  const auto share = [&](v1::RateScaling scaling, uint64_t time, uint32_t members) {
    update.set_scaling(scaling);
    return Schedule::OverClocks(update, Length(), 4).ShareOfRate(time, members);
  };
  CHECK(share(v1::RATE_SCALING_NONE, 0, 4) == 0.2f);
  CHECK(share(v1::RATE_SCALING_NONE, 2, 4) == 0.1f);
  CHECK(share(v1::RATE_SCALING_NONE, 0, 1) == 0.8f);
  CHECK(share(v1::RATE_SCALING_LINEAR, 0, 4) == 0.8f);
  CHECK(share(v1::RATE_SCALING_LINEAR, 0, 3) == 0.8f);
  CHECK(share(v1::RATE_SCALING_SQUARE_ROOT, 0, 4) == 0.4f);
  CHECK(share(v1::RATE_SCALING_LINEAR, 2, 4) == 0.4f);
  update.mutable_schedule()->mutable_warm_up()->set_clocks(2);
  CHECK(share(v1::RATE_SCALING_NONE, 0, 4) == 0.1f);
  CHECK(share(v1::RATE_SCALING_NONE, 1, 4) == 0.2f);
}

}  // namespace
}  // namespace leeway::update_schedule
