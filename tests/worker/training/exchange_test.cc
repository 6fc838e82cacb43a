#include <cmath>
#include <limits>

#include "common/update/averaging.h"
#include "tests/catch.h"
#include "tests/worker/training/driven.h"
#include "tests/worker/training/exchange_rig.h"
#include "worker/training/clock_runner.h"

namespace leeway::exchange {
namespace {

using testing::Delta;
using testing::Elastic;
using testing::Gradient;
using testing::LastExamples;
using testing::LastPushed;
using testing::Rig;
using testing::Sgd;

TEST_CASE("gradient sends the batch's contribution and computes on what was answered") {
  Rig rig(Gradient(1));
  rig.model->set_weights({10, 10, 10, 10, 10, 10});
  rig.model->staleness = 4;
  auto exchange = rig.Make();
  REQUIRE(exchange->Begin(7).ok());
  const auto report = exchange->Run({.clock = 7, .first_step = 7, .steps = 1});
  REQUIRE(report.ok());
  REQUIRE(exchange->Settle().ok());
  CHECK(LastPushed(*rig.model, 0) == std::vector<float>(4, 8.0f));
  CHECK(LastExamples(*rig.model) == 2);
  CHECK(report->loss_sum == 6);
  CHECK(report->examples == 2);
  CHECK(report->learning_rate == 0.5);
  CHECK(report->data_seconds == 0.25);
  CHECK(report->compute_seconds == 0.5);
  CHECK(report->forward_seconds == 0.125);
  CHECK(report->backward_seconds == 0.375);
  REQUIRE(exchange->Run({.clock = 8, .first_step = 8, .steps = 1}).ok());
  CHECK(rig.notes.begun == std::vector<uint64_t>{7, 8});
  REQUIRE(rig.notes.complete.size() == 1);
  CHECK(rig.notes.complete[0].clock == 7);
  CHECK(rig.notes.complete[0].staleness == 4);
  CHECK(rig.notes.complete[0].version == 8);
  CHECK(rig.notes.complete[0].exchange_seconds >= rig.notes.complete[0].wait_seconds);
  CHECK(rig.steps.seen[8][0] == 2.0f);
  CHECK(exchange->SaveState()->empty());
}

TEST_CASE("gradient averages accumulated batches by their examples") {
  Rig rig(Gradient(3));
  rig.steps.examples = [](uint64_t step) { return std::vector<uint64_t>{1, 0, 3}[step]; };
  rig.steps.gradient = [](uint64_t step) { return std::vector<float>{10, 99, 2}[step]; };
  auto exchange = rig.Make();
  REQUIRE(exchange->Begin(0).ok());
  REQUIRE(exchange->Run({.clock = 0, .first_step = 0, .steps = 3}).ok());
  REQUIRE(exchange->Settle().ok());
  // (1 * 10 + 3 * 2) / 4
  CHECK(LastPushed(*rig.model, 0)[0] == Approx(4));
  CHECK(LastExamples(*rig.model) == 4);
}

TEST_CASE(
    "what gradient sends of averaged elements makes the running value after all its batches") {
  for (const uint64_t steps : {1, 2, 5}) {
    Rig rig(Gradient(static_cast<uint32_t>(steps)));
    rig.length.set_steps_per_clock(steps);
    rig.steps.statistic = [](uint64_t step) { return static_cast<float>(step * step % 7); };
    auto exchange = rig.Make();
    REQUIRE(exchange->Begin(0).ok());
    double running = -100;
    for (uint64_t clock = 0; clock < 4; ++clock) {
      REQUIRE(exchange->Run({.clock = clock, .first_step = clock * steps, .steps = steps}).ok());
      REQUIRE(exchange->Settle().ok());
      double after = running;
      for (uint64_t step = clock * steps; step < (clock + 1) * steps; ++step) {
        after += testing::kMomentum * (rig.steps.statistic(step) - after);
      }
      const float sent = LastPushed(*rig.model, 1)[1];
      const double moved = MovedShare(testing::kMomentum, static_cast<double>(steps));
      CAPTURE(steps, clock);
      CHECK(running + moved * (sent - running) == Approx(after));
      running = after;
    }
  }
}

TEST_CASE("gradient with batches of which the first is empty is the mean of the others") {
  Rig rig(Gradient(2));
  rig.steps.examples = [](uint64_t step) { return step == 0 ? 0 : 5; };
  auto exchange = rig.Make();
  REQUIRE(exchange->Begin(0).ok());
  REQUIRE(exchange->Run({.clock = 0, .first_step = 0, .steps = 2}).ok());
  REQUIRE(exchange->Settle().ok());
  CHECK(LastPushed(*rig.model, 0)[0] == 2.0f);
}

TEST_CASE(
    "a gradient that is not finite is left out whole where the job says so, and training goes "
    "on") {
  const float bad = GENERATE(NAN, std::numeric_limits<float>::infinity());
  const bool loss = GENERATE(true, false);
  v1::Exchange choice = Gradient(1);
  choice.set_on_bad_gradient(v1::BAD_GRADIENT_SKIP);
  Rig rig(choice);
  rig.steps.gradient = [bad](uint64_t step) { return step == 0 ? bad : 1.0f; };
  if (loss) rig.steps.loss = bad;
  auto exchange = rig.Make();
  REQUIRE(exchange->Begin(0).ok());
  const auto report = exchange->Run({.clock = 0, .first_step = 0, .steps = 1});
  REQUIRE(report.ok());
  CHECK(report->left_out);
  CHECK_THAT(report->why, Catch::Contains("the gradient of dense_0/weight[0] is"));
  CHECK(report->examples == (loss ? 0 : 2));
  CHECK(std::isfinite(report->loss_sum));
  REQUIRE(exchange->Settle().ok());
  // All of its blocks, including those that were finite.
  CHECK(LastPushed(*rig.model, 0) == std::vector<float>(4, 0.0f));
  CHECK(LastPushed(*rig.model, 1) == std::vector<float>(2, 0.0f));
  CHECK(LastExamples(*rig.model) == 0);
  rig.steps.loss = 3;
  const auto next = exchange->Run({.clock = 1, .first_step = 1, .steps = 1});
  REQUIRE(next.ok());
  CHECK_FALSE(next->left_out);
  REQUIRE(exchange->Settle().ok());
  CHECK(LastPushed(*rig.model, 0) == std::vector<float>(4, 1.0f));
  CHECK(LastExamples(*rig.model) == 2);
}

TEST_CASE("a contribution whose loss is not finite is left out, though its gradient looks well") {
  v1::Exchange choice = Gradient(2);
  choice.set_on_bad_gradient(GENERATE(v1::BAD_GRADIENT_SKIP, v1::BAD_GRADIENT_CLIP));
  choice.set_max_norm(100);
  Rig rig(choice);
  rig.steps.loss = GENERATE(NAN, std::numeric_limits<float>::infinity());
  auto exchange = rig.Make();
  REQUIRE(exchange->Begin(0).ok());
  const auto report = exchange->Run({.clock = 0, .first_step = 0, .steps = 2});
  REQUIRE(report.ok());
  CHECK(report->left_out);
  CHECK_FALSE(report->clipped);
  CHECK_THAT(report->why, Catch::Contains("the loss of step 1 is"));
  CHECK(report->examples == 0);
  REQUIRE(exchange->Settle().ok());
  CHECK(LastPushed(*rig.model, 0) == std::vector<float>(4, 0.0f));
  CHECK(LastExamples(*rig.model) == 0);
}

TEST_CASE("steps for which no batch is left are not run, but for one that sends") {
  v1::Exchange choice;
  uint64_t empty = 0;
  SECTION("gradient") {
    choice = Gradient(500);
    empty = 2;
  }
  SECTION("delta") {
    choice.mutable_delta()->set_local_steps(500);
    empty = 1;
  }
  SECTION("elastic") {
    choice.mutable_elastic()->set_every(500);
    choice.mutable_elastic()->set_alpha(0.5);
    empty = 1;
  }
  v1::Update sgd;
  sgd.mutable_sgd();
  sgd.set_learning_rate(0.5);
  if (choice.has_delta()) *choice.mutable_delta()->mutable_optimizer() = sgd;
  if (choice.has_elastic()) *choice.mutable_elastic()->mutable_optimizer() = sgd;
  Rig rig(choice);
  rig.steps.left = 3;
  rig.steps.examples = [](uint64_t step) { return step < 3 ? 2 : 0; };
  auto exchange = rig.Make();
  REQUIRE(exchange->Begin(0).ok());
  const auto report = exchange->Run({.clock = 0, .first_step = 0, .steps = 500});
  REQUIRE(report.ok());
  REQUIRE(exchange->Settle().ok());
  CHECK(rig.steps.seen.size() == 3 + empty);
  CHECK(report->steps == 3);
  CHECK(report->examples == 6);
  CHECK(LastExamples(*rig.model) == 6);
}

TEST_CASE("a long gradient is clipped by the norm of all blocks together, over all its batches") {
  v1::Exchange choice = Gradient(2);
  choice.set_on_bad_gradient(v1::BAD_GRADIENT_CLIP);
  choice.set_max_norm(1);
  Rig rig(choice);
  auto exchange = rig.Make();
  REQUIRE(exchange->Begin(0).ok());
  // Five elements of (1 + 2) / 2.
  const auto report = exchange->Run({.clock = 0, .first_step = 0, .steps = 2});
  REQUIRE(report.ok());
  CHECK(report->clipped);
  REQUIRE(exchange->Settle().ok());
  CHECK(LastPushed(*rig.model, 0)[0] == Approx(1 / std::sqrt(5)));
  CHECK(LastPushed(*rig.model, 1)[0] == Approx(1 / std::sqrt(5)));
  CHECK(LastExamples(*rig.model) == 4);
}

TEST_CASE(
    "a gradient longer than max_norm fails the job that rejects it, and nothing of it leaves") {
  v1::Exchange choice = Gradient(1);
  choice.set_max_norm(1);
  Rig rig(choice);
  auto exchange = rig.Make();
  REQUIRE(exchange->Begin(0).ok());
  const auto report = exchange->Run({.clock = 0, .first_step = 0, .steps = 1});
  CHECK(absl::IsOutOfRange(report.status()));
  CHECK_THAT(std::string(report.status().message()),
             Catch::StartsWith("worker 2, clock 0: the gradient's norm is 2.23607, but "
                               "exchange.max_norm is 1; most of it is in "));
  CHECK(LastPushed(*rig.model, 0).empty());
}

TEST_CASE("a worker without data still exchanges, with weight zero") {
  const uint32_t batches = GENERATE(1, 3);
  Rig rig(Gradient(batches));
  rig.steps.examples = [](uint64_t) { return 0; };
  auto exchange = rig.Make();
  REQUIRE(exchange->Begin(0).ok());
  REQUIRE(exchange->Run({.clock = 0, .first_step = 0, .steps = batches}).ok());
  REQUIRE(exchange->Settle().ok());
  CHECK(LastPushed(*rig.model, 0) == std::vector<float>(4, 0.0f));
  CHECK(LastExamples(*rig.model) == 0);
}

TEST_CASE("a loss or a value that is not finite ends the clock before anything is sent") {
  for (const v1::Exchange& type : {Gradient(1), Delta(Sgd(0.5)), Elastic(0.5, Sgd(0.5))}) {
    Rig rig(type);
    auto exchange = rig.Make();
    REQUIRE(exchange->Begin(9).ok());
    rig.steps.loss = std::numeric_limits<double>::quiet_NaN();
    absl::Status status = exchange->Run({.clock = 9, .first_step = 4, .steps = 1}).status();
    CHECK(status.code() == absl::StatusCode::kOutOfRange);
    CHECK_THAT(std::string(status.message()),
               Catch::Contains("worker 2, clock 9, step 4: the loss is nan"));
    rig.steps.loss = 1;
    rig.steps.gradient = [](uint64_t) { return std::numeric_limits<float>::infinity(); };
    status = exchange->Run({.clock = 9, .first_step = 4, .steps = 1}).status();
    CHECK(status.code() == absl::StatusCode::kOutOfRange);
    CHECK_THAT(std::string(status.message()), Catch::Contains("dense_0/weight[0]"));
    CHECK(LastPushed(*rig.model, 0).empty());
  }
}

TEST_CASE("an exchange that the job does not name is an error") {
  Rig rig(Gradient(1));
  rig.job.mutable_exchange()->Clear();
  CHECK(!testing::Driven::Make(*rig.client, [&](Carrier& carrier) -> RunnerContext {
           return {.job = rig.job,
                   .schema = rig.schema,
                   .length = rig.length,
                   .carrier = carrier,
                   .backend = *rig.backend,
                   .steps = rig.steps,
                   .listener = rig.notes};
         }).ok());
}

}  // namespace
}  // namespace leeway::exchange
