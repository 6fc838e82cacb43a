// Exchanges whose steps the caller runs, with fake servers.
#include "exchange/exchange.h"

#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "common/buffer.h"
#include "common/status.h"
#include "exchange/carriers/host_group_carrier.h"
#include "tests/catch.h"
#include "tests/client/fake_servers.h"
#include "tests/exchange/small_schema.h"

namespace leeway::exchange {
namespace {

constexpr Time kForever = Time::max();
constexpr double kMomentum = 0.1;

// Five trained elements in two tensors, and an averaged one; blocks of four.
v1::ModelSchema Schema() {
  return testing::SmallSchema(
      {{"dense/weight", 3}, {"dense/bias", 2}, {"norm/mean", 1, kMomentum}});
}

class Notes : public ExchangeListener {
 public:
  absl::Status OnBegin(uint64_t clock) override {
    begun.push_back(clock);
    return clock < end ? absl::OkStatus() : absl::CancelledError("the end");
  }
  void OnComplete(const ExchangeReport& report) override { complete.push_back(report.clock); }

  uint64_t end = std::numeric_limits<uint64_t>::max();
  std::vector<uint64_t> begun, complete;
};

struct Rig {
  // With `tensor` a block begins, which else are of four.
  explicit Rig(const v1::Exchange& exchange, int tensor = 0) {
    *reply.mutable_job()->mutable_exchange() = exchange;
    reply.mutable_job()->mutable_data()->set_batch_size(2);
    *reply.mutable_schema() = Schema();
    BlockCuts cuts;
    if (tensor > 0) {
      reply.mutable_schema()->mutable_tensors(tensor)->set_begins_block(true);
      cuts.push_back(Schema().tensors(tensor).offset());
    }
    reply.mutable_length()->set_steps(100);
    reply.mutable_length()->set_steps_per_clock(3);
    const bool elastic = exchange.has_elastic();
    model = std::make_shared<testing::FakeModel>(
        *BlockLayout::FromWire(6, 1, 4, cuts), elastic,
        static_cast<float>(elastic ? exchange.elastic().alpha() : 0));
    ParameterClientOptions options;
    options.servers = {"a:1"};
    options.total = 6;
    options.block_elements = 4;
    options.cuts = cuts;
    client = *ParameterClient::Open(options, testing::Reach(model));
    carrier = MakeServerCarrier(*client, nullptr);
    steps = *MakeExchange(Context());
  }
  ExchangeContext Context() {
    return {.job = reply.job(),
            .schema = reply.schema(),
            .length = reply.length(),
            .carrier = *carrier,
            .listener = notes,
            .weights = weights.span(),
            .program = true};
  }
  // Returns what was last sent, of all blocks.
  std::vector<float> Pushed() const {
    std::vector<float> values(6);
    for (const auto& request : model->requests()) {
      if (request.method != "PushPull") continue;
      std::copy(request.values.begin(), request.values.end(),
                values.begin() + 4 * request.header.block());
    }
    return values;
  }
  // Returns the blocks that have left so far, and answers them.
  std::vector<uint32_t> BlocksSent() {
    REQUIRE(*steps->Wait({{{0, 6}}}, kForever));
    std::vector<uint32_t> blocks;
    for (const auto& request : model->requests()) {
      if (request.method == "PushPull") blocks.push_back(request.header.block());
    }
    return blocks;
  }
  void Begin(uint64_t clock) {
    REQUIRE(steps->Begin(clock).ok());
    steps->StartClock(clock);
  }

  v1::RegisterWorkerReply reply;
  Notes notes;
  FloatBuffer weights{6};
  std::shared_ptr<testing::FakeModel> model;
  std::unique_ptr<Carrier> carrier;
  std::unique_ptr<Exchange> steps;
  std::unique_ptr<ParameterClient> client;
};

v1::Exchange Gradient() {
  v1::Exchange exchange;
  exchange.mutable_gradient();
  return exchange;
}
v1::Exchange Delta() {
  v1::Exchange exchange;
  exchange.mutable_delta()->set_local_steps(3);
  return exchange;
}
v1::Exchange Elastic(double alpha) {
  v1::Exchange exchange;
  exchange.mutable_elastic()->set_alpha(alpha);
  return exchange;
}

void Fill(std::span<float> values, std::initializer_list<float> with) {
  std::copy(with.begin(), with.end(), values.begin());
}

TEST_CASE("a block of a foreign gradient leaves when all of it is final") {
  Rig rig(Gradient());
  rig.model->set_weights({0, 0, 0, 0, 0, 7});
  rig.Begin(3);
  Fill(rig.steps->contribution(), {1, 2, 3, 4, 5, 8});
  REQUIRE(rig.steps->Final({{{3, 3}}}, false).ok());
  // Block 1 is whole, block 0 is not.
  REQUIRE(rig.BlocksSent() == std::vector<uint32_t>{1});
  CHECK(rig.notes.begun == std::vector<uint64_t>{3});
  REQUIRE(rig.steps->Final({{{0, 3}}}, false).ok());
  CHECK(rig.BlocksSent() == std::vector<uint32_t>{1, 0});
  REQUIRE(*rig.steps->End(2, kForever));
  CHECK(rig.BlocksSent().size() == 2);
  REQUIRE(*rig.steps->SettleUntil(kForever));
  CHECK(rig.notes.complete == std::vector<uint64_t>{3});
  // The running value went from 7 to 8 by a tenth of the way.
  CHECK(rig.Pushed()[5] == Approx(17));
  CHECK(rig.weights.span()[1] == -2);
}

TEST_CASE("what a program did not say was final leaves at the end of the clock") {
  Rig rig(Gradient());
  rig.Begin(0);
  Fill(rig.steps->contribution(), {1, 2, 3, 4, 5, 0});
  REQUIRE(rig.steps->Final({{{1, 2}}}, false).ok());
  CHECK(rig.BlocksSent().empty());
  REQUIRE(*rig.steps->End(2, kForever));
  CHECK(rig.BlocksSent().size() == 2);
  // The next clock's exchange begins after the end of this one, whichever thread waits for it.
  rig.steps->StartClock(1);
  REQUIRE(*rig.steps->End(2, kForever));
  CHECK(rig.notes.complete == std::vector<uint64_t>{0});
  CHECK(rig.notes.begun == std::vector<uint64_t>{0, 1});
}

TEST_CASE(
    "the rates of a clock go with its blocks, each with its own part, and with no later one") {
  Rig rig(Gradient());
  rig.Begin(0);
  const auto rates = std::make_shared<std::vector<UpdatePart>>();
  rates->push_back({.end = 3, .rate = 0.5});
  rates->push_back({.end = 5, .rate = 2});
  REQUIRE(rig.steps->SetRates(rates).ok());
  REQUIRE(rig.steps->Final({{{4, 2}}}, false).ok());
  // Blocks that have left have left with other rates.
  CHECK(absl::IsUnimplemented(rig.steps->SetRates(nullptr)));
  REQUIRE(*rig.steps->End(2, kForever));
  rig.steps->StartClock(1);
  REQUIRE(*rig.steps->End(2, kForever));
  REQUIRE(*rig.steps->SettleUntil(kForever));
  std::vector<std::string> sent;
  for (const auto& request : rig.model->requests()) {
    if (request.method != "PushPull") continue;
    std::string& text = sent.emplace_back(std::to_string(request.header.block()) + ":");
    for (const v1::RatePart& part : request.header.rates()) {
      text += " " + std::to_string(part.end()) + " x " + std::to_string(part.factor()).substr(0, 3);
    }
  }
  CHECK(sent == std::vector<std::string>{"1: 1 x 2.0", "0: 3 x 0.5 4 x 2.0", "0:", "1:"});
  Rig delta(Delta());
  delta.Begin(0);
  CHECK(absl::IsUnimplemented(delta.steps->SetRates(rates)));
}

TEST_CASE("where a block begins with a tensor, what is before it is exchanged within the clock") {
  Rig rig(Gradient(), 1);
  rig.Begin(0);
  Fill(rig.steps->contribution(), {1, 2, 3, 4, 5, 0});
  const auto rates = [](std::optional<double> weight, std::optional<double> bias) {
    auto parts = std::make_shared<std::vector<UpdatePart>>();
    parts->push_back({.end = 3, .rate = weight.value_or(1), .skip = !weight.has_value()});
    parts->push_back({.end = 5, .rate = bias.value_or(1), .skip = !bias.has_value()});
    return parts;
  };
  REQUIRE(rig.steps->SetRates(rates(0.5, 1)).ok());
  REQUIRE(rig.steps->Final({{{0, 3}}}, false).ok());
  REQUIRE(*rig.steps->Wait({{{0, 3}}}, kForever));
  // The fake server knows of no rates.
  CHECK(rig.weights.span()[0] == -1);
  REQUIRE(rig.steps->SetRates(rates(std::nullopt, 0.25)).ok());
  REQUIRE(*rig.steps->End(2, kForever));
  rig.steps->StartClock(1);
  REQUIRE(rig.steps->SetRates(rates(std::nullopt, 1)).ok());
  REQUIRE(*rig.steps->End(2, kForever));
  REQUIRE(*rig.steps->SettleUntil(kForever));
  std::vector<std::string> sent;
  for (const auto& request : rig.model->requests()) {
    if (request.method != "PushPull") continue;
    std::string& text = sent.emplace_back(std::to_string(request.header.block()));
    text += " of " + std::to_string(request.values.size()) + ":";
    for (const v1::RatePart& part : request.header.rates()) {
      text += part.skip() ? " skip" : " x " + std::to_string(part.factor()).substr(0, 4);
    }
  }
  // The one that is skipped whole has left without its values.
  CHECK(sent == std::vector<std::string>{"0 of 3: x 0.50", "1 of 3: x 0.25", "0 of 0: skip",
                                         "1 of 3: x 1.00"});
}

TEST_CASE("a gradient that is judged as a whole is not exchanged in parts") {
  v1::Exchange guarded = Gradient();
  guarded.set_max_norm(1);
  Rig rig(guarded, 1);
  rig.Begin(0);
  Fill(rig.steps->contribution(), {1, 2, 3, 4, 5, 0});
  REQUIRE(rig.steps->SetRates(nullptr).ok());
  REQUIRE(rig.steps->Final({{{0, 3}}}, false).ok());
  const absl::Status refused = rig.steps->SetRates(nullptr);
  CHECK(absl::IsInvalidArgument(refused));
  CHECK(absl::StrContains(refused.message(), "exchange.max_norm"));
}

TEST_CASE("a foreign gradient weighs what its program says by the time that its blocks leave") {
  Rig rig(Gradient());
  const auto weights = [&] {
    std::vector<uint64_t> examples;
    REQUIRE(*rig.steps->SettleUntil(kForever));
    for (const auto& request : rig.model->requests()) {
      if (request.method == "PushPull") examples.push_back(request.header.examples());
    }
    return examples;
  };
  rig.Begin(0);
  REQUIRE(*rig.steps->End(5, kForever));
  CHECK(weights() == std::vector<uint64_t>{5, 5});
  rig.steps->StartClock(1);
  REQUIRE(rig.steps->Final({{{0, 4}}}, false).ok());
  REQUIRE(*rig.steps->End(5, kForever));
  // One batch.
  CHECK(weights() == std::vector<uint64_t>{5, 5, 2, 2});
  rig.steps->StartClock(2);
  rig.steps->SetExamples(7);
  REQUIRE(rig.steps->Final({{{0, 4}}}, false).ok());
  REQUIRE(*rig.steps->End(7, kForever));
  rig.steps->StartClock(3);
  REQUIRE(*rig.steps->End(0, kForever));
  CHECK(weights() == std::vector<uint64_t>{5, 5, 2, 2, 7, 7, 0, 0});
}

TEST_CASE("elements are final once a clock") {
  Rig rig(Gradient());
  rig.Begin(0);
  REQUIRE(rig.steps->Final({{{1, 2}}}, false).ok());
  CHECK(absl::IsInvalidArgument(rig.steps->Final({{{2, 3}}}, false)));
  rig.steps->StartClock(1);
  CHECK(rig.steps->Final({{{2, 3}}}, false).ok());
}

TEST_CASE("a foreign gradient that is not finite is named and not sent") {
  Rig rig(Gradient());
  rig.Begin(0);
  Fill(rig.steps->contribution(), {1, 2, 3, 4, NAN, 0});
  REQUIRE(rig.steps->Final({{{0, 4}}}, false).ok());
  const absl::Status bad = rig.steps->Final({{{4, 2}}}, false);
  CHECK(absl::IsOutOfRange(bad));
  CHECK(std::string(bad.message()).find("dense/bias[1]") != std::string::npos);
  CHECK(rig.BlocksSent() == std::vector<uint32_t>{0});
}

TEST_CASE("a foreign gradient is clipped whole, before any of it leaves") {
  v1::Exchange exchange = Gradient();
  exchange.set_max_norm(5);
  exchange.set_on_bad_gradient(v1::BAD_GRADIENT_CLIP);
  Rig rig(exchange);
  rig.Begin(0);
  Fill(rig.steps->contribution(), {6, 8, 0, 0, 0, 0});
  REQUIRE(rig.steps->Final({{{0, 6}}}, false).ok());
  CHECK(rig.BlocksSent().empty());
  REQUIRE(*rig.steps->End(2, kForever));
  REQUIRE(*rig.steps->SettleUntil(kForever));
  CHECK(rig.steps->clipped());
  CHECK(rig.Pushed()[0] == Approx(3));
}

TEST_CASE("a stop keeps a foreign gradient from leaving") {
  Rig rig(Gradient());
  rig.notes.end = 1;
  rig.Begin(1);
  CHECK(absl::IsCancelled(rig.steps->Final({{{0, 6}}}, false)));
  CHECK(rig.BlocksSent().empty());
}

TEST_CASE("a delta is what the program's own steps have changed") {
  Rig rig(Delta());
  rig.model->set_weights({1, 1, 1, 1, 1, 10});
  rig.Begin(0);
  CHECK(rig.weights.span()[5] == 10);
  CHECK(rig.steps->contribution().empty());
  CHECK(absl::IsUnimplemented(rig.steps->Final({{{0, 1}}}, false)));
  Fill(rig.weights.span(), {0.5f, 1, 1, 1, 3, 20});
  // Three batches of two.
  REQUIRE(*rig.steps->End(6, kForever));
  CHECK(rig.Pushed()[0] == 0.5f);
  CHECK(rig.Pushed()[4] == -2);
  const double share = 1 - std::pow(1 - kMomentum, 3);
  CHECK(rig.Pushed()[5] == Approx(10 + 10 / share));
  CHECK(rig.notes.complete == std::vector<uint64_t>{0});
  // The fakes subtract what they get.
  CHECK(rig.weights.span()[0] == 0.5f);
  CHECK(rig.weights.span()[4] == 3);
}

TEST_CASE("an elastic worker's state is that before a clock that is broken off") {
  Rig rig(Elastic(0.25));
  rig.model->set_weights({4, 4, 4, 4, 4, 4});
  rig.Begin(0);
  const std::string before = *rig.steps->SaveState();
  // The program trains, and the exchange is refused.
  Fill(rig.weights.span(), {1, 2, 3, 4, 5, 6});
  rig.notes.end = 0;
  CHECK(absl::IsCancelled(rig.steps->End(2, kForever).status()));
  CHECK(*rig.steps->SaveState() == before);
}

TEST_CASE("an elastic worker keeps its own weights, over a resumption, too") {
  Rig rig(Elastic(0.25));
  rig.model->set_weights({4, 4, 4, 4, 4, 4});
  rig.Begin(0);
  Fill(rig.weights.span(), {8, 4, 4, 4, 4, 0});
  REQUIRE(*rig.steps->End(6, kForever));
  // 8 - 0.25 (8 - 4), and 0 - 0.25 (0 - 4).
  CHECK(rig.weights.span()[0] == 7);
  CHECK(rig.weights.span()[5] == 1);
  rig.steps->Keep("mine");
  const auto state = rig.steps->SaveState();
  REQUIRE(state.ok());

  Rig resumed(Elastic(0.25));
  resumed.model->set_weights({5, 4, 4, 4, 4, 3});
  REQUIRE(resumed.steps->LoadState(*state).ok());
  resumed.Begin(1);
  CHECK(resumed.weights.span()[0] == 7);
  CHECK(resumed.steps->TakeLoaded() == "mine");
  CHECK(!resumed.steps->TakeLoaded());
}

TEST_CASE("spread exchanges are for Leeway's own workers") {
  Rig rig(Delta());
  rig.reply.mutable_job()->mutable_exchange()->mutable_delta()->set_spread(true);
  CHECK(absl::IsUnimplemented(MakeExchange(rig.Context()).status()));
}

}  // namespace
}  // namespace leeway::exchange
