// A worker's state that was saved by another job than the one that takes it up.
#include "worker/exchange/local_state.h"

#include <string>
#include <vector>

#include "tests/catch.h"
#include "tests/log_capture.h"
#include "tests/worker/exchange/exchange_rig.h"

namespace leeway {
namespace {

using Catch::Matchers::Contains;
using testing::Delta;
using testing::Gradient;
using testing::LogCapture;
using testing::Rig;
using testing::Sgd;

constexpr uint64_t kElements = 3;

// Vector i is filled with i + 1.
LocalState Filled(size_t count, bool residual, std::vector<uint64_t> counts = {}) {
  LocalState state = LocalState::Zeros(count, kElements, residual);
  state.updates = 7;
  state.counts = std::move(counts);
  float value = 0;
  for (FloatBuffer& vector : state.vectors) {
    value += 1;
    for (float& element : vector.span()) element = value;
  }
  return state;
}

// The first element of each vector.
std::vector<float> Firsts(const LocalState& state) {
  std::vector<float> firsts;
  for (const FloatBuffer& vector : state.vectors) firsts.push_back(vector.span()[0]);
  return firsts;
}

TEST_CASE("a state is what was saved") {
  LocalState state = LocalState::Zeros(2, kElements, true);
  state.counts.resize(2);
  const LogCapture log;
  REQUIRE(ParseState(SerializeState(Filled(2, true, {4, 5})), kElements, state).ok());
  CHECK(Firsts(state) == std::vector<float>{1, 2, 3});
  CHECK(state.updates == 7);
  CHECK(state.counts == std::vector<uint64_t>{4, 5});
  CHECK(log.text().empty());
}

TEST_CASE("a residual that nobody saved is zeros, and one that nobody wants is dropped aloud") {
  const LogCapture log;
  LocalState wants = LocalState::Zeros(2, kElements, true);
  REQUIRE(ParseState(SerializeState(Filled(2, false)), kElements, wants).ok());
  CHECK(Firsts(wants) == std::vector<float>{1, 2, 0});
  CHECK(wants.residual);
  LocalState only = LocalState::Zeros(0, kElements, true);
  REQUIRE(ParseState(SerializeState(Filled(0, false)), kElements, only).ok());
  CHECK(Firsts(only) == std::vector<float>{0});
  CHECK(log.text().empty());

  LocalState without = LocalState::Zeros(2, kElements);
  REQUIRE(ParseState(SerializeState(Filled(2, true)), kElements, without).ok());
  CHECK(Firsts(without) == std::vector<float>{1, 2});
  CHECK_FALSE(without.residual);
  CHECK_THAT(log.text(), Contains("a residual of compressed contributions"));
  CHECK_THAT(log.text(), Contains("is lost"));
}

TEST_CASE("groups that are others have each the largest count; with none they are an error") {
  for (const size_t groups : {1, 5}) {
    LocalState state = LocalState::Zeros(1, kElements);
    state.counts.resize(groups);
    const LogCapture log;
    REQUIRE(ParseState(SerializeState(Filled(1, false, {4, 9, 2})), kElements, state).ok());
    CHECK(state.counts == std::vector<uint64_t>(groups, 9));
    CHECK_THAT(log.text(), Contains("of 3 groups of blocks"));
    CHECK(absl::IsInvalidArgument(ParseState(SerializeState(Filled(1, false)), kElements, state)));
  }
  LocalState none = LocalState::Zeros(1, kElements);
  CHECK(
      absl::IsInvalidArgument(ParseState(SerializeState(Filled(1, false, {4})), kElements, none)));
}

TEST_CASE("a slot is never taken for a residual, nor a residual for a slot") {
  LocalState compressed = LocalState::Zeros(1, kElements, true);
  LocalState slots = LocalState::Zeros(2, kElements);
  CHECK(
      absl::IsInvalidArgument(ParseState(SerializeState(Filled(2, false)), kElements, compressed)));
  CHECK(absl::IsInvalidArgument(ParseState(SerializeState(Filled(1, true)), kElements, slots)));
  CHECK(
      absl::IsInvalidArgument(ParseState(SerializeState(Filled(2, false)), kElements + 1, slots)));
  CHECK(Firsts(slots) == std::vector<float>{0, 0});
}

TEST_CASE("a delta worker goes on when compression is switched on or off") {
  const v1::Exchange exchange = Delta(Sgd(1, 0.5));
  for (const bool compressed : {false, true}) {
    Rig first(exchange, compressed), second(exchange, !compressed);
    auto before = first.Make();
    REQUIRE(before->Begin(0).ok());
    REQUIRE(before->Run({.clock = 0, .first_step = 0, .steps = 1}).ok());
    const std::string state = before->SaveState();
    auto after = second.Make();
    REQUIRE(after->LoadState(state).ok());
    REQUIRE(after->Begin(1).ok());
    REQUIRE(after->Run({.clock = 1, .first_step = 1, .steps = 1}).ok());
    // Its momentum has come with it: from zeros on, 0.5 * 1 + 2.
    CHECK(second.steps.seen[1][0] == 0.0f);
    CHECK(second.model->weights()[0] == -2.5f);
  }
  Rig plain(Gradient(1), true);
  auto gradient = plain.Make();
  REQUIRE(gradient->LoadState(gradient->SaveState()).ok());
}

}  // namespace
}  // namespace leeway
