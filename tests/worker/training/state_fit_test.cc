// A worker's state that was saved by another job than the one that takes it up.
#include "exchange/state_fit.h"

#include <string>
#include <utility>
#include <vector>

#include "tests/catch.h"
#include "tests/log_capture.h"
#include "tests/worker/training/exchange_rig.h"

namespace leeway::state_fit {
namespace {

using Catch::Matchers::Contains;
using testing::Delta;
using testing::Elastic;
using testing::Gradient;
using testing::LogCapture;
using testing::Rig;
using testing::Sgd;

constexpr uint64_t kElements = 3;
using Names = std::vector<std::string>;
using Counts = std::vector<uint64_t>;

const StateNames kGradient{"gradient", {}, {}, true};
const StateNames kDelta{"delta", {}, {}, false};
const StateNames kDeltaInt8{"delta", {}, {}, true};
const StateNames kDeltaMomentum{"delta", {}, {"momentum"}, false};
const StateNames kDeltaMomentumInt8{"delta", {}, {"momentum"}, true};
const StateNames kDeltaAdagrad{"delta", {}, {"sum_of_squares"}, false};
const StateNames kDeltaAdam{"delta", {}, {"m", "v"}, false};
const StateNames kElastic{"elastic", {"weights"}, {}, false};
const StateNames kElasticMomentum{"elastic", {"weights"}, {"momentum"}, false};
const StateNames kSpreadDelta{"delta", {"weights", "answers"}, {}, false};

// Vector i is filled with i + 1, and the number of updates is 7.
KeptState Filled(const StateNames& names, Counts counts = {}) {
  KeptState state = KeptState::Zeros(names, kElements);
  state.updates = 7;
  state.counts = std::move(counts);
  float value = 0;
  for (FloatBuffer& vector : state.vectors) {
    value += 1;
    for (float& element : vector.span()) element = value;
  }
  return state;
}

// Returns the first element of each vector.
std::vector<float> Firsts(const KeptState& state) {
  std::vector<float> firsts;
  for (const FloatBuffer& vector : state.vectors) firsts.push_back(vector.span()[0]);
  return firsts;
}

struct Case {
  StateNames saved;
  Counts saved_counts;
  StateNames wanted;
  size_t wanted_counts;
  // The first element of each vector, and the other values that were taken up.
  std::vector<float> taken;
  uint64_t updates;
  Counts counts;
  bool own;
  // Parts of the warning; empty: there is no warning.
  Names says;
};

TEST_CASE("what a job keeps under the same names is taken up, the rest starts afresh aloud") {
  const std::vector<Case> cases = {
      // The same job.
      {kElasticMomentum, {}, kElasticMomentum, 0, {1, 2}, 7, {}, true, {}},
      {kDeltaMomentumInt8, {}, kDeltaMomentumInt8, 0, {1, 2}, 7, {}, true, {}},
      {kSpreadDelta, {4, 9}, kSpreadDelta, 2, {1, 2}, 7, {4, 9}, true, {}},
      // Another optimizer.
      {kDeltaMomentum,
       {},
       kDeltaAdagrad,
       0,
       {0},
       0,
       {},
       true,
       {"delta: momentum", "delta: sum_of_squares", "the optimizer kept (momentum) is lost",
        "starts anew with sum_of_squares"}},
      {kDeltaAdam, {}, kDeltaMomentum, 0, {0}, 0, {}, true, {"kept (m, v) is lost"}},
      {kElastic, {}, kElasticMomentum, 0, {1, 0}, 0, {}, true, {"starts anew with momentum"}},
      {kElasticMomentum, {}, kElastic, 0, {1}, 0, {}, true, {"kept (momentum) is lost"}},
      {kDelta, {}, kDeltaMomentum, 0, {0}, 0, {}, true, {"delta: nothing"}},
      // Another exchange.
      {kElastic,
       {},
       kDeltaMomentum,
       0,
       {0},
       0,
       {},
       false,
       {"elastic: weights", "delta: momentum", "the exchange kept (weights) is lost"}},
      {kElasticMomentum, {}, kDeltaMomentum, 0, {2}, 7, {}, false, {"kept (weights) is lost"}},
      {kDeltaMomentum,
       {},
       kElastic,
       0,
       {0},
       0,
       {},
       false,
       {"kept (momentum) is lost", "starts from the servers' weights"}},
      {kGradient,
       {},
       kDeltaMomentum,
       0,
       {0},
       0,
       {},
       false,
       {"gradient: a residual", "starts anew with momentum",
        "the unsent residual of compressed contributions is lost"}},
      // The same number of vectors, each of a different kind.
      {kGradient,
       {},
       kDeltaInt8,
       0,
       {0},
       7,
       {},
       false,
       {"the unsent residual of compressed contributions is lost"}},
      {kDeltaInt8,
       {},
       kGradient,
       0,
       {0},
       7,
       {},
       false,
       {"the unsent residual of compressed contributions is lost"}},
      {kDeltaMomentum, {}, kGradient, 0, {0}, 0, {}, false, {"kept (momentum) is lost"}},
      // Compression is switched on or off.
      {kDeltaMomentum, {}, kDeltaMomentumInt8, 0, {1, 0}, 7, {}, true, {}},
      {kDeltaMomentumInt8,
       {},
       kDeltaMomentum,
       0,
       {1},
       7,
       {},
       true,
       {"the unsent residual of compressed contributions is lost"}},
      // Spread with other groups, or not spread any more.
      {kSpreadDelta,
       {4, 9, 2},
       kSpreadDelta,
       5,
       {1, 2},
       7,
       {9, 9, 9, 9, 9},
       true,
       {"counts of 3 groups", "with the largest number, 9"}},
      {kSpreadDelta, {4, 9}, kDelta, 0, {}, 7, {}, false, {"kept (weights, answers) is lost"}},
      {kDelta, {}, kSpreadDelta, 2, {0, 0}, 7, {0, 0}, false, {"the servers' weights"}},
      {kSpreadDelta, {4, 9}, kElastic, 2, {0}, 7, {0, 0}, false, {"the servers' weights"}},
      {kElastic, {}, kElastic, 2, {1}, 7, {0, 0}, true, {}},
      {kElastic, {4, 9}, kElastic, 0, {1}, 7, {}, true, {"the number of examples that each group"}},
  };
  for (const Case& one : cases) {
    CAPTURE(one.saved.exchange, one.saved.own, one.saved.slots, one.saved.residual,
            one.wanted.exchange, one.wanted.own, one.wanted.slots, one.wanted.residual);
    // The vectors are not zero before: those that are not taken up become zero.
    KeptState state = Filled(one.wanted, Counts(one.wanted_counts, 3));
    const LogCapture log;
    const auto own =
        TakeUpState(SerializeState(Filled(one.saved, one.saved_counts)), kElements, state);
    REQUIRE(own.ok());
    CHECK(*own == one.own);
    CHECK(Firsts(state) == one.taken);
    CHECK(state.updates == one.updates);
    CHECK(state.counts == one.counts);
    CHECK(log.text().empty() == one.says.empty());
    for (const std::string& text : one.says) CHECK_THAT(log.text(), Contains(text));
  }
}

TEST_CASE("of a state of an older build nothing is taken up, and it is said") {
  std::string bytes = SerializeState(Filled(kElasticMomentum));
  bytes[4] = 2;
  KeptState state = Filled(kElasticMomentum, {4});
  const LogCapture log;
  const auto own = TakeUpState(bytes, kElements, state);
  REQUIRE(own.ok());
  CHECK_FALSE(*own);
  CHECK(Firsts(state) == std::vector<float>{0, 0});
  CHECK(state.updates == 0);
  CHECK(state.counts == Counts{0});
  CHECK_THAT(log.text(), Contains("an older build saved the state"));
  CHECK_THAT(log.text(), Contains("elastic: weights, momentum"));
}

TEST_CASE("of a state of another model nothing is taken up, and nothing is changed") {
  KeptState state = Filled(kElastic);
  const LogCapture log;
  CHECK(absl::IsInvalidArgument(
      TakeUpState(SerializeState(KeptState::Zeros(kElastic, kElements + 1)), kElements, state)
          .status()));
  CHECK(Firsts(state) == std::vector<float>{1});
  CHECK(log.text().empty());
}

TEST_CASE("a delta worker goes on when compression is switched on or off") {
  const v1::Exchange exchange = Delta(Sgd(1, 0.5));
  for (const bool compressed : {false, true}) {
    Rig first(exchange, compressed), second(exchange, !compressed);
    auto before = first.Make();
    REQUIRE(before->Begin(0).ok());
    REQUIRE(before->Run({.clock = 0, .first_step = 0, .steps = 1}).ok());
    const std::string state = *before->SaveState();
    auto after = second.Make();
    REQUIRE(after->LoadState(state).ok());
    REQUIRE(after->Begin(1).ok());
    REQUIRE(after->Run({.clock = 1, .first_step = 1, .steps = 1}).ok());
    // The momentum was taken over: 0.5 * 1 + 2 from zeros on.
    CHECK(second.steps.seen[1][0] == 0.0f);
    CHECK(second.model->weights()[0] == -2.5f);
  }
  Rig plain(Gradient(1), true);
  auto gradient = plain.Make();
  REQUIRE(gradient->LoadState(*gradient->SaveState()).ok());
}

struct Kind {
  std::string name;
  v1::Exchange exchange;
  bool compresses = false;
};

// Every exchange: with and without slots, spread, and with a residual.
std::vector<Kind> Kinds() {
  v1::Update adagrad;
  adagrad.mutable_adagrad();
  adagrad.set_learning_rate(0.5);
  std::vector<Kind> kinds = {{"gradient", Gradient(1), true}};
  for (const v1::Update& optimizer : {Sgd(0.5), Sgd(0.5, 0.9), adagrad}) {
    for (const bool spread : {false, true}) {
      v1::Exchange delta = Delta(optimizer), elastic = Elastic(0.25, optimizer);
      delta.mutable_delta()->set_spread(spread);
      elastic.mutable_elastic()->set_spread(spread);
      const std::string name = optimizer.ShortDebugString() + (spread ? " spread" : "");
      kinds.push_back({"delta " + name, delta});
      kinds.push_back({"delta compressed " + name, delta, true});
      kinds.push_back({"elastic " + name, elastic});
    }
  }
  return kinds;
}

TEST_CASE("every exchange goes on from every other's state") {
  for (const Kind& from : Kinds()) {
    Rig first(from.exchange, from.compresses);
    auto before = first.Make();
    REQUIRE(before->Begin(0).ok());
    REQUIRE(before->Run({.clock = 0, .first_step = 0, .steps = 1}).ok());
    REQUIRE(before->Settle().ok());
    const std::string state = *before->SaveState();
    for (const Kind& to : Kinds()) {
      CAPTURE(from.name, to.name);
      Rig second(to.exchange, to.compresses);
      second.model->set_weights(first.model->weights());
      auto after = second.Make();
      const LogCapture log;
      REQUIRE(after->LoadState(state).ok());
      if (from.name == to.name) {
        CHECK(log.text().empty());
        CHECK(*after->SaveState() == state);
      }
      REQUIRE(after->Begin(1).ok());
      // Wherever the weights come from, they are a worker's weights: they do not start at zero, or
      // at a slot.
      REQUIRE(after->Run({.clock = 1, .first_step = 1, .steps = 1}).ok());
      REQUIRE(after->Settle().ok());
      if (from.exchange.type_case() != to.exchange.type_case()) {
        const float start = second.steps.seen[1][0];
        CHECK(start == first.model->weights()[0]);
      }
    }
  }
}

}  // namespace
}  // namespace leeway::state_fit
