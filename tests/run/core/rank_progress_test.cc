// The clocks in a worker's status are counted once, and its rate is that of the last seconds.
#include "run/core/rank_progress.h"

#include <google/protobuf/text_format.h>

#include "tests/catch.h"

namespace leeway::progress {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Time kBegin = Time(seconds(1000));

v1::StepMetrics Step(uint64_t clock, uint64_t examples = 32) {
  v1::StepMetrics metrics;
  metrics.set_clock(clock);
  metrics.set_examples(examples);
  return metrics;
}

v1::WorkerStatus StatusOf(const RankProgress& progress, Time now = kBegin) {
  v1::WorkerStatus status;
  progress.Fill(now, status);
  return status;
}

double RateOf(const RankProgress& progress, Time now) {
  return StatusOf(progress, now).samples_per_second();
}

// Every counter has a number of its own.
v1::StepMetrics Counted(uint64_t clock) {
  v1::StepMetrics metrics = Step(clock, 10);
  REQUIRE(google::protobuf::TextFormat::MergeFromString(
      "epoch: 0.5 train_loss: 3 staleness: 2 steps: 4 dropped_steps: 5 dropped_examples: 6 "
      "skipped_contributions: 7 clipped_contributions: 8",
      &metrics));
  return metrics;
}

TEST_CASE("progress: what clocks count is summed, what they are is the newest's") {
  RankProgress progress;
  progress.SetWaiting("block 3");
  REQUIRE(progress.Record(Counted(1), kBegin));
  v1::StepMetrics second = Counted(2);
  second.set_epoch(0.75);
  second.set_train_loss(1.5);
  second.set_staleness(1);
  REQUIRE(progress.Record(second, kBegin));
  const v1::WorkerStatus status = StatusOf(progress);
  CHECK(status.epoch() == 0.75);
  CHECK(status.train_loss() == 1.5);
  CHECK(status.staleness() == 1);
  CHECK(status.waiting() == "block 3");
  CHECK(status.examples() == 20);
  CHECK(status.steps() == 8);
  CHECK(status.dropped_steps() == 10);
  CHECK(status.dropped_examples() == 12);
  CHECK(status.skipped_contributions() == 14);
  CHECK(status.clipped_contributions() == 16);
  CHECK(progress.max_staleness() == 2);
}

TEST_CASE("progress: a clock counts once, also one that was computed without examples") {
  RankProgress progress;
  CHECK_FALSE(progress.Record(Counted(0), kBegin));
  REQUIRE(progress.Record(Counted(5), kBegin));
  CHECK_FALSE(progress.Record(Counted(5), kBegin));
  CHECK_FALSE(progress.Record(Counted(4), kBegin));
  v1::StepMetrics idle = Step(6, 0);
  idle.set_train_loss(99);
  REQUIRE(progress.Record(idle, kBegin));
  CHECK(StatusOf(progress).examples() == 10);
  CHECK(StatusOf(progress).train_loss() == 3);
  v1::StepMetrics one = Step(7, 1);
  one.set_train_loss(4);
  REQUIRE(progress.Record(one, kBegin));
  CHECK(StatusOf(progress).train_loss() == 4);
}

TEST_CASE("progress: who tells no loss has none, and keeps the last one that it told") {
  RankProgress progress;
  REQUIRE(progress.Record(Step(1, 10), kBegin));
  CHECK(StatusOf(progress).examples() == 10);
  CHECK_FALSE(StatusOf(progress).has_train_loss());
  v1::StepMetrics told = Step(2, 10);
  told.set_train_loss(0);
  REQUIRE(progress.Record(told, kBegin));
  REQUIRE(progress.Record(Step(3, 10), kBegin));
  REQUIRE(StatusOf(progress).has_train_loss());
  CHECK(StatusOf(progress).train_loss() == 0);
}

TEST_CASE("progress: what comes after the clock that a job goes back to counts again") {
  RankProgress progress;
  v1::EvaluationMetrics evaluation;
  CHECK(progress.Record(evaluation));
  CHECK_FALSE(progress.Record(evaluation));
  for (const uint64_t clock : {4, 9}) {
    REQUIRE(progress.Record(Counted(clock), kBegin));
    evaluation.set_clock(clock);
    REQUIRE(progress.Record(evaluation));
  }
  progress.GoBack(6);
  CHECK_FALSE(progress.Record(Counted(6), kBegin));
  CHECK(progress.Record(Counted(7), kBegin));
  CHECK(StatusOf(progress).examples() == 30);
  evaluation.set_clock(6);
  CHECK_FALSE(progress.Record(evaluation));
  evaluation.set_clock(7);
  CHECK(progress.Record(evaluation));
  // A position that is reported as ahead has nothing behind it.
  progress.GoBack(100);
  CHECK_FALSE(progress.Record(Counted(7), kBegin));
  CHECK(progress.Record(Counted(8), kBegin));
  CHECK_FALSE(progress.Record(evaluation));
}

TEST_CASE("progress: the rate is that of the intervals of the last eight seconds") {
  RankProgress progress;
  CHECK(RateOf(progress, kBegin) == 0);
  REQUIRE(progress.Record(Step(1, 1000), kBegin));
  // It is not known when the worker began its first step.
  CHECK(RateOf(progress, kBegin) == 0);
  REQUIRE(progress.Record(Step(2, 60), kBegin + seconds(2)));
  CHECK(RateOf(progress, kBegin + seconds(2)) == Approx(30));
  // The steps of one heartbeat.
  REQUIRE(progress.Record(Step(3, 20), kBegin + seconds(2)));
  CHECK(RateOf(progress, kBegin + seconds(2)) == Approx(40));
  REQUIRE(progress.Record(Step(4, 40), kBegin + seconds(4)));
  CHECK(RateOf(progress, kBegin + seconds(4)) == Approx(30));
  // Nothing has come for as long as that, and then for longer.
  CHECK(RateOf(progress, kBegin + seconds(12)) == Approx(30));
  CHECK(RateOf(progress, kBegin + seconds(12) + milliseconds(1)) == 0);
}

TEST_CASE("progress: the window forgets what is older, but for where its first interval begins") {
  RankProgress progress;
  REQUIRE(progress.Record(Step(1, 7), kBegin));
  REQUIRE(progress.Record(Step(2, 900), kBegin + seconds(1)));
  REQUIRE(progress.Record(Step(3, 90), kBegin + seconds(3)));
  // The second one is eight seconds old and still counts.
  REQUIRE(progress.Record(Step(4, 10), kBegin + seconds(9)));
  CHECK(RateOf(progress, kBegin + seconds(9)) == Approx(1000.0 / 9));
  REQUIRE(progress.Record(Step(5, 10), kBegin + seconds(10)));
  CHECK(RateOf(progress, kBegin + seconds(10)) == Approx(110.0 / 9));
  // All steps came at once.
  REQUIRE(progress.Record(Step(6, 30), kBegin + seconds(30)));
  CHECK(RateOf(progress, kBegin + seconds(30)) == Approx(30.0 / 20));
}

TEST_CASE("progress: shares of the time are shares, whatever the seconds are") {
  RankProgress progress;
  v1::StepMetrics metrics = Step(1);
  REQUIRE(progress.Record(metrics, kBegin));
  CHECK(StatusOf(progress).wait_share() == 0);
  CHECK_FALSE(StatusOf(progress).has_hidden_share());
  // The wait was longer than the exchange: nothing was hidden.
  metrics = Step(2);
  metrics.set_data_seconds(0.1);
  metrics.set_compute_seconds(0.4);
  metrics.set_wait_seconds(0.5);
  metrics.set_exchange_seconds(0.25);
  REQUIRE(progress.Record(metrics, kBegin));
  CHECK(StatusOf(progress).wait_share() == Approx(0.5));
  CHECK(StatusOf(progress).hidden_share() == 0);
  metrics.set_clock(3);
  metrics.set_exchange_seconds(2);
  REQUIRE(progress.Record(metrics, kBegin));
  CHECK(StatusOf(progress).hidden_share() == Approx(0.75));
  metrics.set_clock(4);
  metrics.set_wait_seconds(-0.5);
  REQUIRE(progress.Record(metrics, kBegin));
  CHECK(StatusOf(progress).hidden_share() == 1);
}

}  // namespace
}  // namespace leeway::progress
