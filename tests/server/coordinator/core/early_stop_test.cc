// Jobs that end because they no longer improve.
#include "server/coordinator/core/early_stop.h"

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "tests/catch.h"
#include "tests/server/coordinator/core/scenario.h"

namespace leeway::early_stop {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

v1::Evaluation Config(uint32_t patience, double min_change = 0,
                      v1::StopMetric metric = v1::STOP_METRIC_TEST_LOSS) {
  v1::Evaluation config;
  config.mutable_early_stop()->set_patience(patience);
  config.mutable_early_stop()->set_min_change(min_change);
  config.mutable_early_stop()->set_metric(metric);
  return config;
}

v1::EvaluationMetrics At(uint64_t clock, double loss, double accuracy = 0.5) {
  v1::EvaluationMetrics metrics;
  metrics.set_clock(clock);
  metrics.set_epoch(static_cast<double>(clock) / 10);
  metrics.set_test_loss(loss);
  metrics.set_test_accuracy(accuracy);
  return metrics;
}

// Returns after how many of these values the job ends; 0: it does not end.
size_t EndsAfter(const v1::Evaluation& config, const std::vector<double>& values) {
  EarlyStop stop(config, {});
  for (size_t i = 0; i < values.size(); ++i) {
    stop.Add(At(10 * (i + 1), values[i], values[i]));
    if (stop.Why()) return i + 1;
  }
  return 0;
}

TEST_CASE("early stop: after so many evaluations in a row without a better value") {
  CHECK(EndsAfter(Config(2), {3, 2, 2.5, 2.5}) == 4);
  CHECK(EndsAfter(Config(2), {3, 2, 2.5, 1.9, 2.5, 2.4}) == 6);
  CHECK(EndsAfter(Config(1), {3, 3}) == 2);
  CHECK(EndsAfter(Config(3), {3, 2, 2.5, 2.5}) == 0);
  CHECK(EndsAfter(Config(1), {3}) == 0);
  CHECK(EndsAfter({}, {3, 4, 5, 6, 7}) == 0);
}

TEST_CASE("early stop: a value that is better by no more than min_change is not") {
  CHECK(EndsAfter(Config(2, 0.5), {3, 2.75, 2.5, 2}) == 3);
  CHECK(EndsAfter(Config(3, 0.5), {3, 2.75, 2.5, 2.25}) == 0);
}

TEST_CASE("early stop: of accuracies the higher is the better") {
  const auto metric = v1::STOP_METRIC_TEST_ACCURACY;
  CHECK(EndsAfter(Config(2, 0, metric), {0.1, 0.2, 0.3, 0.3, 0.25}) == 5);
  CHECK(EndsAfter(Config(2, 0.25, metric), {0.25, 0.5, 0.375, 0.75}) == 3);
}

TEST_CASE("early stop: what is no number is not better than anything") {
  CHECK(EndsAfter(Config(2), {3, kNaN, kNaN}) == 3);
  CHECK(EndsAfter(Config(2), {kNaN, 3, kNaN, 2.5, 2.6}) == 0);
  CHECK(EndsAfter(Config(2), {kNaN, std::numeric_limits<double>::infinity()}) == 2);
}

TEST_CASE("early stop: says which evaluation was the best") {
  const std::vector<v1::EvaluationMetrics> before = {At(10, 3), At(20, 1.5), At(30, 2)};
  EarlyStop stop(Config(2, 0.25), before);
  CHECK_FALSE(stop.Why());
  stop.Add(At(40, 1.375));
  CHECK(stop.clock() == 40);
  CHECK(stop.Why().value_or("") ==
        "early stop: 2 evaluations in a row did not improve test_loss by more than 0.25; the best "
        "is 1.5, at clock 20 (epoch 2)");
  EarlyStop none(Config(1), {});
  CHECK(none.clock() == 0);
  none.Add(At(10, kNaN));
  CHECK(none.Why().value_or("") == "early stop: 1 evaluation in a row had no finite test_loss");
}

TEST_CASE("early stop: an evaluation that was made again counts once, and others are forgotten") {
  EarlyStop stop(Config(2), {});
  for (const uint64_t clock : {10, 20, 20, 20}) stop.Add(At(clock, 3));
  CHECK_FALSE(stop.Why());
  stop.Add(At(30, 3));
  REQUIRE(stop.Why());
  stop.GoBack(20);
  CHECK_FALSE(stop.Why());
  CHECK(stop.clock() == 20);
  stop.Add(At(30, 2));
  stop.Add(At(40, 3));
  // The evaluations after it were of other weights.
  stop.Add(At(10, 1));
  CHECK(stop.clock() == 10);
}

// ---- in the job

CoordinatorOptions StoppingEarly(v1::ConsistencyMode mode = v1::CONSISTENCY_MODE_SYNC) {
  CoordinatorOptions options = TestOptions({.mode = mode});
  *options.job.mutable_evaluation() = Config(2);
  options.job.mutable_evaluation()->mutable_every()->set_clocks(10);
  return options;
}

absl::StatusOr<v1::HeartbeatReply> Evaluated(Scenario& job, uint64_t clock, double loss,
                                             uint32_t rank = 0) {
  v1::HeartbeatRequest request;
  request.set_job(kJob);
  request.set_rank(rank);
  request.set_incarnation(job.incarnations.at(rank));
  request.set_clock(clock);
  request.set_generation(job.generation);
  *request.add_evaluations() = At(clock, loss);
  return job.core.Heartbeat(request, job.now);
}

// All workers leave at these clocks, and everything is saved.
v1::JobState End(Scenario& job, uint64_t clock) {
  for (const uint32_t rank : {0u, 1u}) REQUIRE(job.Leave(rank, clock, v1::LEAVE_STOPPED).ok());
  for (int i = 0; i < 3; ++i) {
    job.FinishSaving();
    job.Seal();
  }
  return job.core.state();
}

TEST_CASE("early stop: a sync job stops a clock after the evaluation that decides, and finishes") {
  Scenario job(StoppingEarly());
  job.Start();
  REQUIRE_FALSE(Evaluated(job, 10, 2)->stop_requested());
  REQUIRE_FALSE(Evaluated(job, 20, 3)->stop_requested());
  // Evaluations of other workers, and repeated ones, do not count.
  REQUIRE_FALSE(Evaluated(job, 25, 3, 1)->stop_requested());
  REQUIRE_FALSE(Evaluated(job, 20, 3)->stop_requested());
  job.EventNames();
  const auto reply = Evaluated(job, 30, 2.5);
  REQUIRE(reply.ok());
  CHECK(reply->stop_requested());
  CHECK(reply->stop_at() == 31);
  CHECK(job.EventNames() == std::vector<std::string>{"early_stop", "stop_fixed"});
  // The slower worker asks from an earlier clock.
  CHECK(job.StopAt(1, 29).value_or(0) == 31);
  CHECK(End(job, 31) == v1::JOB_FINISHED);
  const std::vector<Event> events = job.Take<Event>();
  const auto finished = std::find_if(events.begin(), events.end(),
                                     [](const Event& e) { return e.name == "job_finished"; });
  REQUIRE(finished != events.end());
  CHECK(finished->state == "finished");
  CHECK(finished->message ==
        "early stop: 2 evaluations in a row did not improve test_loss; the best is 2, at clock 10 "
        "(epoch 1)");
  CHECK(job.core.Status(job.now).message() == "the job is over: " + finished->message);
}

TEST_CASE("early stop: outside of sync each worker stops where it is") {
  Scenario job(StoppingEarly(v1::CONSISTENCY_MODE_ASYNC));
  job.Start();
  for (const uint64_t clock : {10, 20, 30}) REQUIRE(Evaluated(job, clock, 2).ok());
  CHECK(job.StopAt(1, 5).value_or(0) == 5);
  CHECK(End(job, 30) == v1::JOB_FINISHED);
}

TEST_CASE("early stop: what a person asks for first stays a stop") {
  Scenario job(StoppingEarly());
  job.Start();
  REQUIRE(Evaluated(job, 10, 2).ok());
  job.core.StopJob("a person", job.now);
  for (const uint64_t clock : {20, 30}) REQUIRE(Evaluated(job, clock, 2).ok());
  REQUIRE(job.StopAt(0, 30).ok());
  CHECK(End(job, 31) == v1::JOB_STOPPED);
}

// A run that is resumed from a cut at `clock` with these evaluations.
CoordinatorOptions Resumed(uint64_t clock, std::vector<v1::EvaluationMetrics> evaluations) {
  CoordinatorOptions options = StoppingEarly();
  CoordinatorOptions::Resumed& resumed = options.resumed.emplace();
  resumed.manifest.set_clock(clock);
  *resumed.manifest.mutable_job() = options.job;
  *resumed.manifest.mutable_schema() = TestSchema();
  options.ranks.evaluations = std::move(evaluations);
  return options;
}

TEST_CASE("early stop: a coordinator that is started again goes by the evaluations before it") {
  Scenario job(Resumed(20, {At(10, 2), At(20, 3)}));
  job.Start();
  CHECK_FALSE(job.Beat(0, 20)->stop_requested());
  CHECK(Evaluated(job, 30, 3)->stop_at() == 31);
}

TEST_CASE("early stop: evaluations of clocks that are done again are not counted twice") {
  Scenario job(Resumed(20, {At(10, 2), At(20, 3), At(30, 3)}));
  job.Start();
  CHECK_FALSE(job.Beat(0, 20)->stop_requested());
  CHECK_FALSE(Evaluated(job, 30, 1.5)->stop_requested());
}

TEST_CASE("early stop: a run that has ended early trains no further when it is resumed") {
  // Clock 35: the run had continued with more patience than it has now.
  for (const uint64_t clock : {31, 35}) {
    Scenario job(Resumed(clock, {At(10, 2), At(20, 3), At(30, 3)}));
    job.Start();
    const auto reply = job.Beat(0, clock);
    REQUIRE(reply.ok());
    CHECK(reply->stop_requested());
    CHECK(reply->stop_at() == clock);
  }
}

}  // namespace
}  // namespace leeway::early_stop
