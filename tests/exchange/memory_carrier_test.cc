// Each exchange over a carrier that knows no servers: an exchange does not know with whom it
// exchanges.
#include "tests/exchange/memory_carrier.h"

#include <vector>

#include "exchange/exchange.h"
#include "tests/catch.h"

namespace leeway::memory_carrier {
namespace {

constexpr uint64_t kTotal = 6;
constexpr Time kForever = Time::max();

struct Worker {
  Worker(testing::MemoryTable& table, const v1::Exchange& exchange) : carrier(table) {
    *job.mutable_exchange() = exchange;
    job.mutable_data()->set_batch_size(1);
    schema.set_total(kTotal);
    schema.set_trained(kTotal);
    made = *MakeExchange({.job = job,
                          .schema = schema,
                          .length = length,
                          .carrier = carrier,
                          .listener = listener,
                          .weights = weights.span()});
    REQUIRE(made->Begin(0).ok());
  }

  v1::TrainingJob job;
  v1::ModelSchema schema;
  v1::JobLength length;
  testing::MemoryCarrier carrier;
  ExchangeListener listener;
  FloatBuffer weights{kTotal};
  std::unique_ptr<Exchange> made;
};

TEST_CASE("two workers exchange mean gradients through memory") {
  testing::MemoryTable table(*BlockLayout::FromWire(kTotal, 1, 4), 2, std::vector<float>(6, 10));
  v1::Exchange exchange;
  exchange.mutable_gradient();
  Worker one(table, exchange), other(table, exchange);
  for (uint64_t clock = 0; clock < 3; ++clock) {
    for (Worker* worker : {&one, &other}) {
      worker->made->StartClock(clock);
      const float gradient = worker == &one ? 1 : 3;
      for (float& value : worker->made->contribution()) value = gradient;
      // The second block leaves before the clock ends.
      REQUIRE(worker->made->Final({{{4, 2}}}, false).ok());
      REQUIRE(*worker->made->End(1, kForever));
    }
    // The mean of both gradients is 2.
    for (Worker* worker : {&one, &other}) {
      REQUIRE(*worker->made->SettleUntil(kForever));
      for (const float value : worker->weights.span()) {
        CHECK(value == 10 - 2 * static_cast<float>(clock + 1));
      }
    }
  }
}

TEST_CASE("two workers exchange the change of their weights through memory") {
  testing::MemoryTable table(*BlockLayout::FromWire(kTotal, 1, 4), 2, std::vector<float>(6, 10));
  v1::Exchange exchange;
  exchange.mutable_delta();
  Worker one(table, exchange), other(table, exchange);
  one.made->StartClock(0);
  other.made->StartClock(0);
  for (float& weight : one.weights.span()) weight -= 1;
  for (float& weight : other.weights.span()) weight -= 4;
  // The first waits until the other has contributed.
  CHECK(!*one.made->End(1, kForever));
  CHECK(*other.made->End(1, kForever));
  CHECK(*one.made->End(1, kForever));
  for (const Worker* worker : {&one, &other}) {
    for (const float value : worker->weights.span()) CHECK(value == 7.5f);
  }
}

// Notes before which clock's contribution its residual is read.
struct ReadsOnly : ContributionEncoder {
  EncodedContribution Encode(const Codec&, uint32_t, uint64_t, std::span<const float>) override {
    return {};
  }
  absl::Status Read(uint64_t clock, std::span<float>) const override {
    read_before = clock;
    return absl::OkStatus();
  }
  void Undo(uint64_t) override {}
  absl::Status Set(std::span<const float>) override { return absl::OkStatus(); }
  mutable uint64_t read_before = 0;
};
struct ResidualCarrier : testing::MemoryCarrier {
  using MemoryCarrier::MemoryCarrier;
  ContributionEncoder* encoder() const override { return &residual; }
  mutable ReadsOnly residual;
};

struct UntilTwo : ExchangeListener {
  absl::Status OnBegin(uint64_t clock) override {
    return clock < 2 ? absl::OkStatus() : absl::CancelledError("the end");
  }
};

// A device may have encoded a contribution whose exchange then does not begin.
TEST_CASE("the state that is saved has no contribution that did not count") {
  testing::MemoryTable table(*BlockLayout::FromWire(kTotal, 1, 4), 2, std::vector<float>(6, 10));
  ResidualCarrier carrier(table);
  testing::MemoryCarrier other(table);
  v1::TrainingJob job;
  job.mutable_exchange()->mutable_gradient();
  v1::ModelSchema schema;
  schema.set_total(kTotal);
  v1::JobLength length;
  UntilTwo listener;
  FloatBuffer weights(kTotal), zeros(kTotal);
  const auto exchange = *MakeExchange({.job = job,
                                       .schema = schema,
                                       .length = length,
                                       .carrier = carrier,
                                       .listener = listener,
                                       .weights = weights.span()});
  const auto state_before = [&] {
    REQUIRE(exchange->SaveState().ok());
    return carrier.residual.read_before;
  };
  REQUIRE(exchange->Begin(0).ok());
  for (uint64_t clock = 0; clock < 2; ++clock) {
    exchange->StartClock(clock);
    CHECK(state_before() == clock);
    REQUIRE(*exchange->End(1, kForever));
    CHECK(state_before() == clock);
    other.Begin(clock);
    other.Contribute({0, 2}, 1, nullptr, zeros.span(), zeros.span());
    if (clock == 0) {
      REQUIRE(*exchange->SettleUntil(kForever));
      CHECK(state_before() == 1);
    }
  }
  SECTION("abandoned") {
    exchange->Abandon();
    CHECK(state_before() == 1);
  }
  SECTION("not begun") {
    exchange->StartClock(2);
    CHECK(absl::IsCancelled(exchange->End(1, kForever).status()));
    CHECK(state_before() == 2);
  }
}

}  // namespace
}  // namespace leeway::memory_carrier
