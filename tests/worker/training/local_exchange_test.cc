// Exchanges whose workers keep weights of their own: delta and elastic exchanges, and their states.
#include <limits>
#include <string>

#include "common/update/averaging.h"
#include "tests/catch.h"
#include "tests/worker/training/exchange_rig.h"
#include "worker/training/clock_runner.h"

namespace leeway::local_exchange {
namespace {

using Catch::Matchers::Contains;
using testing::Delta;
using testing::Elastic;
using testing::LastExamples;
using testing::LastPushed;
using testing::Rig;
using testing::Sgd;

TEST_CASE("delta sends what the weights lost in its local steps") {
  Rig rig(Delta(Sgd(0.5)));
  rig.model->set_weights({10, 10, 10, 10, 10, 11});
  auto exchange = rig.Make();
  REQUIRE(exchange->Begin(0).ok());
  REQUIRE(exchange->Run({.clock = 0, .first_step = 0, .steps = 3}).ok());
  // 0.5 (1 + 2 + 3)
  CHECK(LastPushed(*rig.model, 0) == std::vector<float>(4, 3.0f));
  CHECK(LastExamples(*rig.model) == 6);
  CHECK(rig.steps.seen[2][0] == 8.5f);
  // The averaged element is the mean of the worker's batches, whatever the servers have and the
  // learning rate is.
  CHECK(LastPushed(*rig.model, 1)[1] == 1.0f);
  // The worker continues from the answer.
  REQUIRE(exchange->Run({.clock = 1, .first_step = 3, .steps = 3}).ok());
  CHECK(rig.steps.seen[3][0] == 7.0f);
}

TEST_CASE("what delta sends of averaged elements makes the running value after all its steps") {
  for (const bool spread : {false, true}) {
    for (const uint64_t steps : {1, 2, 5, 20}) {
      v1::Exchange type = Delta(Sgd(0.5));
      type.mutable_delta()->set_local_steps(static_cast<uint32_t>(steps));
      type.mutable_delta()->set_spread(spread);
      Rig rig(type);
      rig.length.set_steps_per_clock(steps);
      rig.steps.statistic = [](uint64_t step) { return static_cast<float>(step * step % 7); };
      auto exchange = rig.Make();
      REQUIRE(exchange->Begin(0).ok());
      double running = -100;
      for (uint64_t clock = 0; clock < 4; ++clock) {
        REQUIRE(exchange->Run({.clock = clock, .first_step = clock * steps, .steps = steps}).ok());
        double after = running;
        for (uint64_t step = clock * steps; step < (clock + 1) * steps; ++step) {
          after += testing::kMomentum * (rig.steps.statistic(step) - after);
        }
        const float sent = LastPushed(*rig.model, 1)[1];
        const double moved = MovedShare(testing::kMomentum, static_cast<double>(steps));
        CAPTURE(spread, steps, clock);
        CHECK(running + moved * (sent - running) == Approx(after));
        running = after;
      }
    }
  }
}

TEST_CASE("delta's averaged elements are means of batches, however many examples those have") {
  for (const bool spread : {false, true}) {
    v1::Exchange type = Delta(Sgd(0.5));
    type.mutable_delta()->set_spread(spread);
    Rig rig(type);
    rig.length.set_steps_per_clock(3);
    // Full, partial, empty, and more than one batch.
    rig.steps.examples = [](uint64_t step) { return std::vector<uint64_t>{2, 1, 0, 3}[step % 4]; };
    rig.steps.statistic = [](uint64_t step) { return step % 4 == 2 ? 1e9f : 1.0f + step % 2; };
    auto exchange = rig.Make();
    REQUIRE(exchange->Begin(0).ok());
    for (uint64_t clock = 0; clock < 20; ++clock) {
      const uint64_t steps = clock % 3 == 2 ? 1 : 3;
      REQUIRE(exchange->Run({.clock = clock, .first_step = 3 * clock, .steps = steps}).ok());
      if (LastExamples(*rig.model) == 0) continue;
      CAPTURE(spread, clock);
      CHECK(LastPushed(*rig.model, 1)[1] >= 1.0f);
      CHECK(LastPushed(*rig.model, 1)[1] <= 2.0f);
    }
  }
}

TEST_CASE("a local optimizer's slots start where its rule says, also after another optimizer's") {
  v1::Update adam;
  adam.set_learning_rate(1);
  adam.mutable_adam()->set_epsilon(0.1);
  adam.mutable_adam()->set_bias_correction(false);
  adam.mutable_adam()->set_initial_v(1);
  Rig momentum(Delta(Sgd(1, 0.5)));
  auto before = momentum.Make();
  REQUIRE(before->Begin(0).ok());
  REQUIRE(before->Run({.clock = 0, .first_step = 0, .steps = 1}).ok());
  for (const bool resumed : {false, true}) {
    Rig rig(Delta(adam));
    rig.steps.gradient = [](uint64_t) { return 1.0f; };
    auto exchange = rig.Make();
    if (resumed) REQUIRE(exchange->LoadState(*before->SaveState()).ok());
    REQUIRE(exchange->Begin(0).ok());
    REQUIRE(exchange->Run({.clock = 0, .first_step = 0, .steps = 1}).ok());
    // m = 0.1, and v stays 1.
    CHECK(LastPushed(*rig.model, 0)[0] == Approx(0.1 / 1.1));
  }
}

TEST_CASE("an elastic worker keeps running values of its own") {
  Rig rig(Elastic(0.25, Sgd(0.5)));
  rig.model->set_weights({8, 8, 8, 8, 8, 11});
  auto exchange = rig.Make();
  REQUIRE(exchange->Begin(0).ok());
  REQUIRE(exchange->Run({.clock = 0, .first_step = 0, .steps = 2}).ok());
  CHECK(LastPushed(*rig.model, 1)[1] == Approx(1 + 10 * 0.81));
}

TEST_CASE("delta keeps its optimizer's slots between clocks, and in its state") {
  Rig rig(Delta(Sgd(1, 0.5)));
  rig.steps.gradient = [](uint64_t) { return 1.0f; };
  auto exchange = rig.Make();
  REQUIRE(exchange->Begin(0).ok());
  REQUIRE(exchange->Run({.clock = 0, .first_step = 0, .steps = 1}).ok());
  CHECK(LastPushed(*rig.model, 0)[0] == 1.0f);
  const std::string state = *exchange->SaveState();
  REQUIRE(exchange->Run({.clock = 1, .first_step = 1, .steps = 1}).ok());
  CHECK(LastPushed(*rig.model, 0)[0] == 1.5f);

  Rig other(Delta(Sgd(1, 0.5)));
  other.steps.gradient = rig.steps.gradient;
  auto resumed = other.Make();
  REQUIRE(resumed->LoadState(state).ok());
  REQUIRE(resumed->Begin(1).ok());
  REQUIRE(resumed->Run({.clock = 1, .first_step = 1, .steps = 1}).ok());
  CHECK(LastPushed(*other.model, 0)[0] == 1.5f);
}

TEST_CASE("the force between an elastic worker and the centre is the same on both sides") {
  Rig rig(Elastic(0.25, Sgd(0.5)));
  rig.model->set_weights({8, 8, 8, 8, 8, 8});
  auto exchange = rig.Make();
  REQUIRE(exchange->Begin(0).ok());
  REQUIRE(exchange->Run({.clock = 0, .first_step = 0, .steps = 2}).ok());
  // x = 8 - 0.5 (1 + 2) = 6.5; e = 0.25 (6.5 - 8) = -0.375
  CHECK(LastPushed(*rig.model, 0) == std::vector<float>(4, 6.5f));
  CHECK(rig.model->weights()[0] == 8 - 0.375f);
  // The evaluated weights are the centre before the contribution.
  CHECK(exchange->weights()[0] == 8.0f);
  REQUIRE(exchange->Run({.clock = 1, .first_step = 2, .steps = 2}).ok());
  CHECK(rig.steps.seen[2][0] == 6.5f + 0.375f);
  REQUIRE(exchange->ReadLatest().ok());
  CHECK(exchange->weights()[0] == rig.model->weights()[0]);
}

TEST_CASE("an elastic worker goes on from its own weights when it is resumed") {
  Rig rig(Elastic(0.25, Sgd(0.5, 0.9)));
  rig.model->set_weights({8, 8, 8, 8, 8, 8});
  auto exchange = rig.Make();
  REQUIRE(exchange->Begin(0).ok());
  REQUIRE(exchange->Run({.clock = 0, .first_step = 0, .steps = 2}).ok());
  const std::string state = *exchange->SaveState();
  Rig other(Elastic(0.25, Sgd(0.5, 0.9)));
  other.model->set_weights(rig.model->weights());
  REQUIRE(exchange->Run({.clock = 1, .first_step = 2, .steps = 2}).ok());

  auto resumed = other.Make();
  REQUIRE(resumed->LoadState(state).ok());
  REQUIRE(resumed->Begin(1).ok());
  REQUIRE(resumed->Run({.clock = 1, .first_step = 2, .steps = 2}).ok());
  CHECK(LastPushed(*other.model, 0) == LastPushed(*rig.model, 0));
  CHECK(other.model->weights() == rig.model->weights());
  CHECK(*resumed->SaveState() == *exchange->SaveState());
}

TEST_CASE("a clock that was broken off is not in the state") {
  for (const v1::Exchange& type : {Delta(Sgd(0.5, 0.9)), Elastic(0.5, Sgd(0.5, 0.9))}) {
    Rig rig(type);
    auto exchange = rig.Make();
    REQUIRE(exchange->Begin(0).ok());
    REQUIRE(exchange->Run({.clock = 0, .first_step = 0, .steps = 2}).ok());
    const std::string state = *exchange->SaveState();
    rig.client->Cancel();
    CHECK(exchange->Run({.clock = 1, .first_step = 2, .steps = 2}).status().code() ==
          absl::StatusCode::kCancelled);
    CHECK(*exchange->SaveState() == state);
  }
}

TEST_CASE("a local optimizer that overflows ends the clock at that step, naming what and whose") {
  v1::Update adam;
  adam.mutable_adam();
  adam.set_learning_rate(0.5);
  for (const v1::Exchange& type : {Delta(adam), Elastic(0.5, adam)}) {
    Rig rig(type);
    // The gradient's square is beyond the largest float.
    rig.steps.gradient = [](uint64_t step) { return step == 3 ? 1e21f : 1.0f; };
    auto exchange = rig.Make();
    REQUIRE(exchange->Begin(0).ok());
    REQUIRE(exchange->Run({.clock = 0, .first_step = 0, .steps = 2}).ok());
    const std::string state = *exchange->SaveState();
    const auto run = exchange->Run({.clock = 1, .first_step = 2, .steps = 2});
    CHECK(run.status().code() == absl::StatusCode::kOutOfRange);
    CHECK_THAT(std::string(run.status().message()),
               Contains("worker 2, clock 1, step 3: the local optimizer's v of dense_0/weight[0] "
                        "is inf"));
    CHECK(rig.notes.begun == std::vector<uint64_t>{0});
    CHECK(*exchange->SaveState() == state);
    CHECK(rig.Make()->LoadState(state).ok());
  }
}

TEST_CASE("a state of another model, cut short or not finite is refused and changes nothing") {
  Rig rig(Elastic(0.25, Sgd(0.5, 0.9)));
  auto exchange = rig.Make();
  REQUIRE(exchange->Begin(0).ok());
  const std::string good = *exchange->SaveState();
  Rig larger(Elastic(0.25, Sgd(0.5, 0.9)));
  larger.schema.set_total(testing::kTotal + 2);
  CHECK(larger.Make()->LoadState(good).code() == absl::StatusCode::kInvalidArgument);
  CHECK(exchange->LoadState("").code() == absl::StatusCode::kInvalidArgument);
  CHECK(exchange->LoadState(good.substr(0, good.size() - 1)).code() ==
        absl::StatusCode::kInvalidArgument);
  CHECK(exchange->LoadState(good + "x").code() == absl::StatusCode::kInvalidArgument);
  std::string magic = good, value = good;
  magic[0] = 'X';
  CHECK(exchange->LoadState(magic).code() == absl::StatusCode::kInvalidArgument);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  value.replace(value.size() - sizeof(nan), sizeof(nan), reinterpret_cast<const char*>(&nan),
                sizeof(nan));
  CHECK(exchange->LoadState(value).code() == absl::StatusCode::kInvalidArgument);
  CHECK(*exchange->SaveState() == good);
}

}  // namespace
}  // namespace leeway::local_exchange
