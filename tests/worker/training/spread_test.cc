#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "client/calls/parameter_client.h"
#include "tests/catch.h"
#include "tests/client/fake_servers.h"
#include "tests/log_capture.h"
#include "tests/worker/training/driven.h"
#include "worker/compute/eigen/eigen_backend.h"
#include "worker/training/clock_runner.h"
#include "worker/training/spread_plan.h"

namespace leeway::spread {
namespace {

using Catch::Matchers::Contains;
using testing::FakeModel;

// Four blocks of two elements, and a clock of four steps: each group is one block.
constexpr uint64_t kTotal = 8;
constexpr uint64_t kSteps = 4;

// Every step's gradient is 1 in every element, of two examples: with a learning rate of 0.5 it
// subtracts 0.5.
class OneSteps : public StepRunner {
 public:
  absl::StatusOr<StepResult> Run(uint64_t step, const StepVectors& vectors,
                                 TrainObserver& observer) override {
    const auto& [weights, contribution, home, loss_scale] = vectors;
    seen[step] = {weights.begin(), weights.end()};
    for (float& value : contribution) value = 1;
    return StepResult{.loss_sum = 1, .examples = 2};
  }
  std::map<uint64_t, std::vector<float>> seen;
};

class Until : public ExchangeListener {
 public:
  absl::Status OnBegin(uint64_t clock) override {
    return clock < end ? absl::OkStatus() : absl::CancelledError("the end");
  }
  void OnComplete(const ExchangeReport& report) override { complete.push_back(report.clock); }

  uint64_t end = std::numeric_limits<uint64_t>::max();
  std::vector<uint64_t> complete;
};

struct Rig {
  explicit Rig(bool elastic, uint64_t block_elements = 2, uint64_t steps_per_clock = kSteps) {
    v1::Update optimizer;
    optimizer.mutable_sgd()->set_momentum(0);
    optimizer.set_learning_rate(0.5);
    v1::Exchange& exchange = *job.mutable_exchange();
    if (elastic) {
      exchange.mutable_elastic()->set_alpha(0.5);
      exchange.mutable_elastic()->set_spread(true);
      *exchange.mutable_elastic()->mutable_optimizer() = optimizer;
    } else {
      exchange.mutable_delta()->set_spread(true);
      *exchange.mutable_delta()->mutable_optimizer() = optimizer;
    }
    schema.set_total(kTotal);
    schema.set_trained(kTotal);
    length.set_steps_per_epoch(100);
    length.set_steps(100);
    length.set_clocks(25);
    length.set_steps_per_clock(steps_per_clock);
    model = std::make_shared<FakeModel>(*BlockLayout::FromWire(kTotal, 1, block_elements), elastic,
                                        0.5f);
    model->set_weights(std::vector<float>(kTotal, 10));
    ParameterClientOptions options;
    options.servers = {"a:1"};
    options.total = kTotal;
    options.block_elements = block_elements;
    client = *ParameterClient::Open(options, testing::Reach(model));
  }

  // Another worker has subtracted 1 from each block before this one's contribution comes.
  void AddAnother() {
    model->script = [model = model.get()](const testing::FakeRequest& request) {
      if (request.method != "PushPull") return absl::OkStatus();
      std::vector<float> weights = model->weights();
      const ElementRange range = model->layout().Range(request.header.block());
      for (uint64_t i = range.offset; i < range.end(); ++i) weights[i] -= 1;
      model->set_weights(weights);
      return absl::OkStatus();
    };
  }

  std::unique_ptr<testing::Driven> Make() {
    return *testing::Driven::Make(*client, [&](Carrier& carrier) -> RunnerContext {
      return {.job = job,
              .schema = schema,
              .length = length,
              .carrier = carrier,
              .backend = *backend,
              .steps = steps,
              .listener = until};
    });
  }
  absl::Status Run(testing::Driven& exchange, uint64_t clock, uint64_t count = kSteps) {
    return exchange.Run({.clock = clock, .first_step = clock * kSteps, .steps = count}).status();
  }
  // By clock and block: the first value, and the examples.
  std::map<std::pair<uint64_t, uint32_t>, std::pair<float, uint64_t>> Sent() const {
    std::map<std::pair<uint64_t, uint32_t>, std::pair<float, uint64_t>> sent;
    for (const testing::FakeRequest& request : model->requests()) {
      if (request.method != "PushPull") continue;
      sent[{request.header.clock(), request.header.block()}] = {request.values[0],
                                                                request.header.examples()};
    }
    return sent;
  }

  v1::TrainingJob job;
  v1::ModelSchema schema;
  v1::JobLength length;
  std::unique_ptr<Backend> backend = *EigenBackend::Make(1);
  OneSteps steps;
  Until until;
  std::shared_ptr<FakeModel> model;
  std::unique_ptr<ParameterClient> client;
};

using Sent = std::map<std::pair<uint64_t, uint32_t>, std::pair<float, uint64_t>>;

TEST_CASE("spread: a group of blocks leaves after each step, or after each few, all by the last") {
  const SpreadPlan even(*BlockLayout::FromWire(kTotal, 1, 2), 4);
  CHECK(even.groups() == 4);
  const SpreadPlan few(*BlockLayout::FromWire(kTotal, 1, 2), 10);
  CHECK(few.groups() == 4);
  CHECK(few.LeavesAfter(0, 10) == 2);
  CHECK(few.LeavesAfter(3, 10) == 10);
  const SpreadPlan many(*BlockLayout::FromWire(100, 1, 2), 3);
  CHECK(many.groups() == 3);
  uint32_t next = 0;
  for (uint64_t group = 0; group < 3; ++group) {
    CHECK(many.Blocks(group).first == next);
    next += many.Blocks(group).count;
    CHECK(many.LeavesAfter(group, 3) == group + 1);
    // A last clock of one step.
    CHECK(many.LeavesAfter(group, 1) == 1);
  }
  CHECK(next == 50);
}

TEST_CASE("spread delta: a step later the answer is taken, and what that step moved is kept") {
  Rig rig(false);
  rig.AddAnother();
  auto exchange = rig.Make();
  REQUIRE(exchange->Begin(0).ok());
  REQUIRE(rig.Run(*exchange, 0).ok());
  CHECK(rig.Sent() ==
        Sent{{{0, 0}, {0.5f, 2}}, {{0, 1}, {1.0f, 4}}, {{0, 2}, {1.5f, 6}}, {{0, 3}, {2.0f, 8}}});
  // Step 1 continues with what step 0 left. Then block 0 is 10 - 1 - 0.5, plus what step 1 moved.
  CHECK(rig.steps.seen[1] == std::vector<float>(8, 9.5f));
  CHECK(rig.steps.seen[2] == std::vector<float>{8, 8, 9, 9, 9, 9, 9, 9});
  CHECK(rig.steps.seen[3] == std::vector<float>{7.5f, 7.5f, 7.5f, 7.5f, 8.5f, 8.5f, 8.5f, 8.5f});
  const auto weights = exchange->weights();
  CHECK(std::vector<float>(weights.begin(), weights.end()) ==
        std::vector<float>{8.5f, 8.5f, 8, 8, 7.5f, 7.5f, 7, 7});
  CHECK(rig.until.complete == std::vector<uint64_t>{0});
  REQUIRE(rig.Run(*exchange, 1).ok());
  CHECK(rig.steps.seen[4] == std::vector<float>(8, 7.0f));
  // The change of the four steps since the block left before.
  CHECK(rig.Sent().at({1, 0}) == std::pair<float, uint64_t>{2.0f, 8});
}

TEST_CASE("spread elastic: the force is that of the weights as they left") {
  Rig rig(true);
  auto exchange = rig.Make();
  REQUIRE(exchange->Begin(0).ok());
  REQUIRE(rig.Run(*exchange, 0).ok());
  CHECK(rig.Sent().at({0, 0}) == std::pair<float, uint64_t>{9.5f, 2});
  CHECK(rig.Sent().at({0, 3}) == std::pair<float, uint64_t>{8.0f, 8});
  CHECK(rig.steps.seen[2] == std::vector<float>{9.25f, 9.25f, 9, 9, 9, 9, 9, 9});
  REQUIRE(rig.Run(*exchange, 1).ok());
  // 8 - 0.5 (8 - 10), at once.
  CHECK(rig.steps.seen[4][7] == 9.0f);
}

TEST_CASE("spread: a life that goes on from a state computes what the first would have") {
  for (const bool elastic : {false, true}) {
    Rig whole(elastic), first(elastic), second(elastic);
    for (Rig* rig : {&whole, &first, &second}) rig->AddAnother();
    auto one = whole.Make();
    REQUIRE(one->Begin(0).ok());
    for (uint64_t clock = 0; clock < 3; ++clock) REQUIRE(whole.Run(*one, clock).ok());
    auto before = first.Make();
    REQUIRE(before->Begin(0).ok());
    REQUIRE(first.Run(*before, 0).ok());
    const std::string state = *before->SaveState();
    second.model->set_weights(first.model->weights());
    auto after = second.Make();
    REQUIRE(after->LoadState(state).ok());
    REQUIRE(after->Begin(1).ok());
    for (uint64_t clock = 1; clock < 3; ++clock) REQUIRE(second.Run(*after, clock).ok());
    for (uint64_t step = kSteps; step < 3 * kSteps; ++step) {
      CHECK(second.steps.seen[step] == whole.steps.seen[step]);
    }
    CHECK(*after->SaveState() == *one->SaveState());
    CHECK(second.model->weights() == whole.model->weights());
    CHECK(after->LoadState(state.substr(0, state.size() - 4)).code() ==
          absl::StatusCode::kInvalidArgument);
  }
}

TEST_CASE("spread: in other groups a worker goes on, each with the examples of the one with most") {
  for (const bool elastic : {false, true}) {
    Rig first(elastic), coarser(elastic, 4), shorter(elastic, 2, 3);
    auto before = first.Make();
    REQUIRE(before->Begin(0).ok());
    REQUIRE(first.Run(*before, 0).ok());
    // The groups have three, two, one and no steps of two examples.
    const std::string state = *before->SaveState();
    for (Rig* rig : {&coarser, &shorter}) {
      rig->model->set_weights(first.model->weights());
      auto after = rig->Make();
      const testing::LogCapture log;
      REQUIRE(after->LoadState(state).ok());
      CHECK_THAT(log.text(), Contains("of 4 groups of blocks"));
      CHECK_THAT(log.text(), Contains("with the largest number, 6"));
      REQUIRE(after->Begin(1).ok());
      REQUIRE(rig->Run(*after, 1).ok());
    }
    CHECK(coarser.Sent().at({1, 0}).second == 10);
    CHECK(coarser.Sent().at({1, 1}).second == 14);
    CHECK(shorter.Sent().at({1, 0}).second == 8);
  }
}

TEST_CASE("spread delta: what others did while a worker was away is no part of its change") {
  Rig first(false), second(false);
  auto before = first.Make();
  REQUIRE(before->Begin(0).ok());
  REQUIRE(first.Run(*before, 0).ok());
  std::vector<float> weights = first.model->weights();
  for (float& weight : weights) weight -= 3;
  second.model->set_weights(weights);
  auto after = second.Make();
  REQUIRE(after->LoadState(*before->SaveState()).ok());
  REQUIRE(after->Begin(1).ok());
  REQUIRE(second.Run(*after, 1).ok());
  // The values are those of a job without another worker, but three lower.
  REQUIRE(first.Run(*before, 1).ok());
  for (uint32_t block = 0; block < 4; ++block) {
    CHECK(second.Sent().at({1, block}) == first.Sent().at({1, block}));
  }
  CHECK(second.steps.seen[4][0] == first.steps.seen[4][0] - 3);
}

TEST_CASE("spread: a clock that may not begin sends nothing and leaves the state as it was") {
  Rig rig(false);
  auto exchange = rig.Make();
  REQUIRE(exchange->Begin(0).ok());
  REQUIRE(rig.Run(*exchange, 0).ok());
  const std::string state = *exchange->SaveState();
  rig.until.end = 1;
  CHECK(rig.Run(*exchange, 1).code() == absl::StatusCode::kCancelled);
  CHECK(*exchange->SaveState() == state);
  CHECK(rig.Sent().size() == 4);
}

TEST_CASE("spread: a last clock of fewer steps sends every block") {
  Rig rig(false);
  auto exchange = rig.Make();
  REQUIRE(exchange->Begin(0).ok());
  REQUIRE(rig.Run(*exchange, 0, 2).ok());
  CHECK(rig.Sent() ==
        Sent{{{0, 0}, {0.5f, 2}}, {{0, 1}, {0.5f, 2}}, {{0, 2}, {0.5f, 2}}, {{0, 3}, {1.0f, 4}}});
}

}  // namespace
}  // namespace leeway::spread
