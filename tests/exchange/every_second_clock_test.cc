// A new exchange is one file: this one sends the mean gradient of two clocks in every second clock,
// and nothing in the others. In a job it would be one more line in exchange/make.cc.
#include <vector>

#include "common/status.h"
#include "exchange/exchange.h"
#include "tests/catch.h"
#include "tests/exchange/memory_carrier.h"

namespace leeway::every_second_clock {
namespace {

class EverySecondClock : public Exchange {
 public:
  explicit EverySecondClock(const ExchangeContext& context)
      : Exchange(context), gradient_(context.weights.size()), sent_(context.carrier.MakeVector()) {}

  std::span<float> contribution() override { return gradient_.span(); }
  absl::StatusOr<uint64_t> Begin(uint64_t clock) override {
    return ReadWeights(carrier(), clock, context().weights);
  }
  void StartClock(uint64_t clock) override { clock_ = clock; }
  absl::StatusOr<bool> Wait(std::span<const ElementRange> elements, Time deadline) override {
    return carrier().Await(elements, deadline);
  }
  void SetExamples(uint64_t) override {}
  absl::Status Final(std::span<const ElementRange>, bool) override { return absl::OkStatus(); }

  absl::StatusOr<bool> End(uint64_t examples, Time deadline) override {
    ASSIGN_OR_RETURN(const bool settled, SettleUntil(deadline));
    if (!settled) return false;
    const bool sends = clock_ % 2 == 1;
    for (uint64_t i = 0; i < sent_.size(); ++i) {
      sent_.data()[i] = sends ? (kept_[i] + gradient_.data()[i]) / 2 : 0;
    }
    kept_.assign(gradient_.data(), gradient_.data() + gradient_.size());
    RETURN_IF_ERROR(context().listener.OnBegin(clock_));
    carrier().Begin(clock_);
    carrier().Contribute({0, carrier().layout().blocks()}, sends ? examples : 0, nullptr,
                         sent_.span(), context().weights);
    RETURN_IF_ERROR(carrier().Finish());
    return true;
  }

  absl::StatusOr<bool> SettleUntil(Time deadline) override {
    if (!carrier().under_way()) return true;
    ASSIGN_OR_RETURN(const bool answered, carrier().AwaitAll(deadline));
    if (answered) context().listener.OnComplete(carrier().End());
    return answered;
  }
  absl::Status ReadLatest() override { return carrier().ReadLatest(context().weights); }

 private:
  FloatBuffer gradient_, sent_;
  std::vector<float> kept_;
  uint64_t clock_ = 0;
};

TEST_CASE("an exchange of one's own sends in every second clock") {
  testing::MemoryTable table(*BlockLayout::FromWire(6, 1, 4), 1, std::vector<float>(6, 10));
  testing::MemoryCarrier carrier(table);
  v1::TrainingJob job;
  v1::ModelSchema schema;
  schema.set_total(6);
  v1::JobLength length;
  ExchangeListener listener;
  FloatBuffer weights(6);
  EverySecondClock exchange({.job = job,
                             .schema = schema,
                             .length = length,
                             .carrier = carrier,
                             .listener = listener,
                             .weights = weights.span()});
  REQUIRE(exchange.Begin(0).ok());
  std::vector<float> seen;
  for (uint64_t clock = 0; clock < 4; ++clock) {
    exchange.StartClock(clock);
    REQUIRE(*exchange.Wait({{{0, 6}}}, Time::max()));
    for (float& value : exchange.contribution()) value = static_cast<float>(clock);
    REQUIRE(*exchange.End(1, Time::max()));
    REQUIRE(exchange.Settle().ok());
    seen.push_back(weights.data()[5]);
  }
  CHECK(seen == std::vector<float>{10, 9.5, 9.5, 7});
}

}  // namespace
}  // namespace leeway::every_second_clock
