#include "worker/exchange/exchange.h"

#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <memory>

#include "common/status.h"
#include "tests/catch.h"
#include "tests/worker/client/fake_servers.h"
#include "worker/client/parameter_client.h"

namespace leeway {
namespace {

using testing::FakeModel;

// Five trained elements in two tensors, and an averaged one.
constexpr uint64_t kTrained = 5;
constexpr uint64_t kTotal = 6;

v1::ModelSchema Schema() {
  v1::ModelSchema schema;
  const auto add = [&](const char* name, uint64_t offset) {
    v1::TensorSpec* tensor = schema.add_tensors();
    tensor->set_name(name);
    tensor->set_offset(offset);
  };
  add("dense_0/weight", 0);
  add("dense_0/bias", 3);
  add("batch_norm_1/mean", 5);
  schema.set_trained(kTrained);
  schema.set_total(kTotal);
  return schema;
}

// Steps by arithmetic: the gradient of step t is g(t) everywhere, of n(t) examples; the running
// statistic moves towards 1 by a tenth.
class FakeSteps : public StepRunner {
 public:
  std::function<float(uint64_t)> gradient = [](uint64_t step) {
    return static_cast<float>(step + 1);
  };
  std::function<uint64_t(uint64_t)> examples = [](uint64_t) { return 2; };
  double loss = 3;

  absl::StatusOr<StepResult> Run(uint64_t step, std::span<const float> weights,
                                 std::span<float> contribution, TrainObserver& observer) override {
    const ElementRange all[] = {{0, kTotal}};
    RETURN_IF_ERROR(observer.BeforeForward(all));
    seen[step] = {weights.begin(), weights.end()};
    const uint64_t n = examples(step);
    for (size_t i = 0; i < kTrained; ++i) contribution[i] = n > 0 ? gradient(step) : 0;
    contribution[kTrained] = n > 0 ? 0.1f * (weights[kTrained] - 1) : 0;
    const double loss_sum = loss * static_cast<double>(n);
    RETURN_IF_ERROR(observer.AfterForward(loss_sum, n));
    RETURN_IF_ERROR(observer.OnFinal(all));
    return StepResult{loss_sum, n, 0.25, 0.5, 0.125, 0.375};
  }

  // What each step saw.
  std::map<uint64_t, std::vector<float>> seen;
};

class Notes : public ExchangeListener {
 public:
  absl::Status OnBegin(uint64_t clock) override {
    begun.push_back(clock);
    return clock < end ? absl::OkStatus() : absl::CancelledError("the end");
  }
  void OnComplete(const ExchangeReport& report) override { complete.push_back(report); }

  uint64_t end = std::numeric_limits<uint64_t>::max();
  std::vector<uint64_t> begun;
  std::vector<ExchangeReport> complete;
};

struct Rig {
  explicit Rig(const v1::Exchange& exchange) {
    *job.mutable_exchange() = exchange;
    job.mutable_update()->mutable_sgd();
    job.mutable_update()->set_learning_rate(0.5);
    const bool elastic = exchange.has_elastic();
    model =
        std::make_shared<FakeModel>(*BlockLayout::FromWire(kTotal, 1, 4), elastic,
                                    static_cast<float>(elastic ? exchange.elastic().alpha() : 0));
    length.set_steps_per_epoch(100);
    length.set_steps(100);
    length.set_clocks(100);
    length.set_steps_per_clock(1);
    ParameterClientOptions options;
    options.servers = {"a:1"};
    options.rank = 2;
    options.total = kTotal;
    options.block_elements = 4;
    client = *ParameterClient::Open(options, testing::Reach(model));
  }

  // Lives as long as the rig, and longer than its client: until then calls may use its vectors.
  Exchange* Make() {
    auto made = MakeExchange({.job = job,
                              .schema = schema,
                              .length = length,
                              .rank = 2,
                              .client = *client,
                              .steps = steps,
                              .listener = notes});
    REQUIRE(made.ok());
    exchanges.push_back(*std::move(made));
    return exchanges.back().get();
  }

  v1::TrainingJob job;
  v1::ModelSchema schema = Schema();
  v1::JobLength length;
  FakeSteps steps;
  Notes notes;
  std::shared_ptr<FakeModel> model;
  std::vector<std::unique_ptr<Exchange>> exchanges;
  std::unique_ptr<ParameterClient> client;
};

v1::Update Sgd(double learning_rate, double momentum = 0) {
  v1::Update update;
  update.mutable_sgd()->set_momentum(momentum);
  update.set_learning_rate(learning_rate);
  return update;
}

v1::Exchange Gradient(uint32_t accumulation) {
  v1::Exchange exchange;
  exchange.mutable_gradient()->set_accumulation(accumulation);
  return exchange;
}
v1::Exchange Delta(const v1::Update& optimizer) {
  v1::Exchange exchange;
  exchange.mutable_delta()->set_local_steps(3);
  *exchange.mutable_delta()->mutable_optimizer() = optimizer;
  return exchange;
}
v1::Exchange Elastic(double alpha, const v1::Update& optimizer) {
  v1::Exchange exchange;
  exchange.mutable_elastic()->set_alpha(alpha);
  exchange.mutable_elastic()->set_every(2);
  *exchange.mutable_elastic()->mutable_optimizer() = optimizer;
  return exchange;
}

// What block 0 was last sent: elements 0 to 3.
std::vector<float> LastPushed(const FakeModel& model, uint32_t block) {
  std::vector<float> values;
  for (const auto& request : model.requests()) {
    if (request.header.block() == block && request.method == "PushPull") values = request.values;
  }
  return values;
}
uint64_t LastExamples(const FakeModel& model) {
  uint64_t examples = 0;
  for (const auto& request : model.requests()) {
    if (request.method == "PushPull") examples = request.header.examples();
  }
  return examples;
}

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
  CHECK(exchange->SaveState().empty());
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
  // Every block of it, also those that were finite.
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
  CHECK_THAT(
      std::string(report.status().message()),
      Catch::StartsWith("worker 2, clock 0: the gradient's norm is 2.23607, exchange.max_norm "
                        "is 1; most of it in "));
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
  // The averaged element takes its change as it is, whatever the learning rate: 11 -> 1 + 10 *
  // 0.9^3.
  CHECK(LastPushed(*rig.model, 1)[1] == Approx(11 - (1 + 10 * 0.729)));
  // It goes on from the answer.
  REQUIRE(exchange->Run({.clock = 1, .first_step = 3, .steps = 3}).ok());
  CHECK(rig.steps.seen[3][0] == 7.0f);
}

TEST_CASE("delta keeps its optimizer's slots between clocks, and in its state") {
  Rig rig(Delta(Sgd(1, 0.5)));
  rig.steps.gradient = [](uint64_t) { return 1.0f; };
  auto exchange = rig.Make();
  REQUIRE(exchange->Begin(0).ok());
  REQUIRE(exchange->Run({.clock = 0, .first_step = 0, .steps = 1}).ok());
  CHECK(LastPushed(*rig.model, 0)[0] == 1.0f);
  const std::string state = exchange->SaveState();
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
  // What is evaluated is the centre as it was.
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
  const std::string state = exchange->SaveState();
  Rig other(Elastic(0.25, Sgd(0.5, 0.9)));
  other.model->set_weights(rig.model->weights());
  REQUIRE(exchange->Run({.clock = 1, .first_step = 2, .steps = 2}).ok());

  auto resumed = other.Make();
  REQUIRE(resumed->LoadState(state).ok());
  REQUIRE(resumed->Begin(1).ok());
  REQUIRE(resumed->Run({.clock = 1, .first_step = 2, .steps = 2}).ok());
  CHECK(LastPushed(*other.model, 0) == LastPushed(*rig.model, 0));
  CHECK(other.model->weights() == rig.model->weights());
  CHECK(resumed->SaveState() == exchange->SaveState());
}

TEST_CASE("a clock that was broken off is not in the state") {
  for (const v1::Exchange& type : {Delta(Sgd(0.5, 0.9)), Elastic(0.5, Sgd(0.5, 0.9))}) {
    Rig rig(type);
    auto exchange = rig.Make();
    REQUIRE(exchange->Begin(0).ok());
    REQUIRE(exchange->Run({.clock = 0, .first_step = 0, .steps = 2}).ok());
    const std::string state = exchange->SaveState();
    rig.client->Cancel();
    CHECK(exchange->Run({.clock = 1, .first_step = 2, .steps = 2}).status().code() ==
          absl::StatusCode::kCancelled);
    CHECK(exchange->SaveState() == state);
  }
}

TEST_CASE("a state of another shape, cut short or not finite is refused and changes nothing") {
  Rig rig(Elastic(0.25, Sgd(0.5, 0.9)));
  auto exchange = rig.Make();
  REQUIRE(exchange->Begin(0).ok());
  const std::string good = exchange->SaveState();
  Rig plain(Elastic(0.25, Sgd(0.5)));
  auto other = plain.Make();
  CHECK(other->LoadState(good).code() == absl::StatusCode::kInvalidArgument);
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
  CHECK(exchange->SaveState() == good);
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
  CHECK(!MakeExchange({.job = rig.job,
                       .schema = rig.schema,
                       .length = rig.length,
                       .client = *rig.client,
                       .steps = rig.steps,
                       .listener = rig.notes})
             .ok());
}

}  // namespace
}  // namespace leeway
