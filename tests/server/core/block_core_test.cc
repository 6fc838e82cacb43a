#include "server/core/block_core.h"

#include <string>
#include <vector>

#include "tests/catch.h"
#include "tests/server/core/started.h"

namespace leeway::block_core {
namespace {

TEST_CASE("an older life of a rank is refused for good") {
  BlockCore core = Started(Async(2));
  CHECK(core.OnAttach(1, 5).value() == 0);
  CHECK(OnlyRefusal(core.OnContribution({1, 4, 0}, 1, true, 0)) == absl::StatusCode::kAborted);
  CHECK(OnlyRefusal(core.OnRead({1, 4, 0}, 1, 0)) == absl::StatusCode::kAborted);
  CHECK(core.OnAttach(1, 4).status().code() == absl::StatusCode::kAborted);
  CHECK(core.OnContribution({1, 5, 0}, 2, false, 0).accepted);
}

TEST_CASE("a new life does again what is held of the one before it and not applied") {
  for (const ConsistencyRules& rules : {Sync(2), Bounded(2, 1), Async(2)}) {
    BlockCore core = Started(rules);
    REQUIRE(core.OnContribution({0, 1, 0}, 1, true, 0).accepted);
    CHECK(core.OnAttach(0, 2).value() == 0);
    REQUIRE(core.OnRead({0, 2, 0}, 2, 0).answers.size() == 1);
    CHECK_FALSE(core.OnContribution({0, 2, 0}, 3, true, 0).accepted);
    core.OnContribution({1, 1, 0}, 4, true, 0);
    core.OnApplied();
    CHECK(core.OnAttach(0, 3).value() == 1);
  }
}

TEST_CASE("who waits is not answered once a newer life has been told where to go on") {
  for (const ConsistencyRules& rules : {Sync(1), Bounded(1, 1), Async(1)}) {
    BlockCore core = Started(rules);
    REQUIRE(core.OnContribution({0, 1, 0}, 1, true, 0).update);
    CHECK(core.OnAttach(0, 2).value() == 0);
    CHECK(core.OnContribution({0, 2, 0}, 2, true, 0).answers.empty());
    const Decisions applied = core.OnApplied();
    REQUIRE(applied.refusals.size() == 1);
    CHECK(applied.refusals[0].request == 1);
    CHECK(applied.refusals[0].status.code() == absl::StatusCode::kAborted);
    REQUIRE(applied.answers.size() == 1);
    CHECK(applied.answers[0].request == 2);
  }
}

TEST_CASE("clocks come one after the other, from ranks that exist") {
  for (const ConsistencyRules& rules : {Sync(2), Bounded(2, 1), Async(2)}) {
    BlockCore core = Started(rules);
    CHECK(OnlyRefusal(core.OnContribution({0, 1, 1}, 1, true, 0)) ==
          absl::StatusCode::kFailedPrecondition);
    CHECK(OnlyRefusal(core.OnContribution({2, 1, 0}, 1, true, 0)) ==
          absl::StatusCode::kInvalidArgument);
    CHECK(OnlyRefusal(core.OnRead({0, 1, 1}, 1, 0)) == absl::StatusCode::kFailedPrecondition);
  }
}

TEST_CASE("before its first version a block refuses contributions and lets readers wait") {
  BlockCore core(7, Async(1));
  CHECK(OnlyRefusal(core.OnContribution({0, 1, 0}, 1, true, 0)) == absl::StatusCode::kUnavailable);
  CHECK(core.OnRead({0, 1, 0}, 2, 0).answers.empty());
  CHECK(core.OnInitialized({}).answers.size() == 1);
}

TEST_CASE("one update at a time, in the order of acceptance, readers see finished states only") {
  BlockCore core = Started(Async(3));
  Decisions first = core.OnContribution({2, 1, 0}, 12, true, 0);
  REQUIRE(first.update);
  CHECK(first.answers.empty());
  CHECK_FALSE(core.OnContribution({0, 1, 0}, 10, true, 0).update);
  // The current version stays until the update is done.
  CHECK(core.OnReadLatest(99, 0).answers.size() == 1);
  CHECK(core.OnRead({1, 1, 0}, 98, 0).answers.size() == 1);
  Decisions next = core.OnApplied();
  REQUIRE(next.update);
  CHECK(next.update->contributions == RequestIds{10});
  CHECK(next.answers.size() == 1);
}

TEST_CASE("a wait that is given up names who is missing") {
  BlockCore core = Started(Sync(3));
  core.OnContribution({1, 1, 0}, 1, true, 5);
  core.OnSetLive(2, false);
  CHECK(core.OnTick(4).refusals.empty());
  Decisions ticked = core.OnTick(5);
  REQUIRE(ticked.refusals.size() == 1);
  CHECK(ticked.refusals[0].status.code() == absl::StatusCode::kUnavailable);
  CHECK(ticked.refusals[0].status.message() ==
        "block 7, clock 1: waiting for worker 0 (at clock 0), worker 2 (at clock 0, lost)");
  CHECK_FALSE(core.has_waiters());
}

TEST_CASE("who waits on is told who is missing, every so often, and answered in the end") {
  BlockCore core = Started(Sync(3));
  core.OnContribution({1, 1, 0}, 1, true, 5);
  core.OnContribution({2, 1, 0}, 2, true, 5);
  const auto stays = [](RequestId request) { return request == 1; };
  const Decisions early = core.OnTick(4, 6, stays);
  CHECK(early.reminders.empty());
  CHECK(early.refusals.empty());
  const Decisions told = core.OnTick(5, 7, stays);
  REQUIRE(told.reminders.size() == 1);
  CHECK(told.reminders[0].request == 1);
  CHECK(told.reminders[0].status.message() ==
        "block 7, clock 1: waiting for worker 0 (at clock 0)");
  // The other reader is refused.
  CHECK(OnlyRefusal(told) == absl::StatusCode::kUnavailable);
  CHECK(told.refusals[0].request == 2);
  // The reader counts as if it had come at 7.
  CHECK(core.OnTick(6, 8, stays).reminders.empty());
  CHECK(core.OnTick(7, 9, stays).reminders.size() == 1);
  core.OnContribution({0, 1, 0}, 3, false, 8);
  const Decisions done = core.OnApplied();
  REQUIRE(done.answers.size() == 2);
  CHECK(done.answers[0].request == 1);
  CHECK(done.answers[1].request == 3);
}

TEST_CASE("an older life does not wait on, whatever it says") {
  BlockCore core = Started(Sync(2));
  core.OnContribution({1, 1, 0}, 1, true, 5);
  REQUIRE(core.OnAttach(1, 2).ok());
  const Decisions tick = core.OnTick(5, 7, [](RequestId) { return true; });
  CHECK(tick.reminders.empty());
  CHECK(tick.refusals.size() == 1);
}

TEST_CASE("without sync a cut is taken when the mean clock reaches it, whoever is lost") {
  ConsistencyRules rules = Async(2);
  rules.cut_every = 2;
  BlockCore core = Started(rules);
  std::vector<uint64_t> cuts;
  auto hand_in = [&](uint32_t rank, uint64_t clock) {
    core.OnContribution({rank, 1, clock}, 1, false, 0);
    if (auto cut = core.OnApplied().cut) cuts.push_back(*cut);
  };
  for (uint64_t clock = 0; clock < 3; ++clock) hand_in(0, clock);
  CHECK(cuts.empty());
  core.OnSetLive(1, false);
  hand_in(0, 3);
  CHECK(cuts == std::vector<uint64_t>{2});
  core.OnSetLive(1, true);
  for (uint64_t clock = 0; clock < 4; ++clock) hand_in(1, clock);
  CHECK(cuts == std::vector<uint64_t>{2, 4});
}

TEST_CASE("a block goes on from a checkpoint's progress") {
  ConsistencyRules rules = Async(2);
  rules.cut_every = 4;
  BlockCore core(0, rules);
  core.OnInitialized({17, {9, 8}});
  CHECK(core.OnAttach(0, 1).value() == 9);
  CHECK(core.OnAttach(1, 1).value() == 8);
  CHECK_FALSE(core.OnContribution({0, 1, 8}, 1, false, 0).accepted);
  CHECK(core.OnContribution({1, 1, 8}, 2, false, 0).accepted);
  CHECK_FALSE(core.OnApplied().cut);
  CHECK(core.progress().version == 18);
}

TEST_CASE("of many who are missing some are named, and the rest counted") {
  BlockCore core = Started(Sync(1000));
  core.OnContribution({0, 1, 0}, 1, true, 0);
  const std::string text(core.OnTick(0).refusals[0].status.message());
  CHECK(text.find("worker 8 (at clock 0) and 991 more") != std::string::npos);
  CHECK(text.size() < 400);
}

std::string ToldTo(BlockCore& core, RequestId request) {
  for (const Refusal& refusal : core.OnTick(0).refusals) {
    if (refusal.request == request) return std::string(refusal.status.message());
  }
  return "nothing";
}

TEST_CASE("who waits is told what for: a first version, an update, or certain workers") {
  using Catch::Matchers::Contains;
  BlockCore fresh(7, Sync(2));
  fresh.OnReadLatest(1, 0);
  CHECK_THAT(ToldTo(fresh, 1), Contains("block 7 waits for its first version"));
  fresh.OnRead({0, 1, 0}, 2, 0);
  CHECK_THAT(ToldTo(fresh, 2), Contains("waits for its first version"));

  BlockCore alone = Started(Sync(1));
  alone.OnContribution({0, 1, 0}, 1, true, 0);
  CHECK(ToldTo(alone, 1) == "block 7: an update runs");

  BlockCore lockstep = Started(Sync(3));
  lockstep.OnSetLive(2, false);
  lockstep.OnContribution({0, 1, 0}, 1, true, 0);
  CHECK(ToldTo(lockstep, 1) ==
        "block 7, clock 1: waiting for worker 1 (at clock 0), worker 2 (at clock 0, lost)");

  // It names live workers only, and only those that are too far behind.
  BlockCore bounded = Started(Bounded(4, 1));
  bounded.OnSetLive(3, false);
  for (const uint32_t rank : {0, 0, 1}) {
    bounded.OnContribution({rank, 1, bounded.progress().clocks[rank]}, 10 + rank, false, 0);
    bounded.OnApplied();
  }
  bounded.OnRead({0, 1, 2}, 1, 0);
  CHECK(ToldTo(bounded, 1) == "block 7, clock 2: waiting for worker 2 (at clock 0)");
}

TEST_CASE("up to eight who are missing are named, and nobody counted") {
  BlockCore core = Started(Sync(9));
  core.OnContribution({8, 1, 0}, 1, true, 0);
  const std::string text = ToldTo(core, 1);
  CHECK_THAT(text, Catch::Matchers::Contains("worker 0 ") &&
                       Catch::Matchers::EndsWith("worker 7 (at clock 0)"));
}

TEST_CASE("who is no rank is not taken for one") {
  BlockCore core = Started(Sync(2));
  for (const uint32_t rank : {2u, 3u, 1u << 31}) {
    const Decisions decisions = core.OnSetLive(rank, false);
    CHECK(decisions.answers.empty());
    CHECK_FALSE(decisions.update);
  }
  core.OnContribution({0, 1, 0}, 1, true, 0);
  CHECK(core.OnContribution({1, 1, 0}, 2, true, 0).update);
}

TEST_CASE("a set that was said once stays, whatever is said of its clock later") {
  ConsistencyRules rules = Sync(3);
  rules.committed_sets = true;
  BlockCore core = Started(rules);
  core.OnContribution({0, 1, 0}, 1, true, 0);
  core.OnContribution({1, 1, 0}, 2, true, 0);
  CHECK_FALSE(core.OnCommitted(0, {0, 1, 2}).update);
  CHECK_FALSE(core.OnCommitted(0, {0, 1}).update);
}

TEST_CASE("with committed sets who waits is told whether its set is known") {
  ConsistencyRules rules = Sync(2);
  rules.committed_sets = true;
  BlockCore core = Started(rules);
  core.OnContribution({0, 1, 0}, 1, true, 0);
  core.OnContribution({1, 1, 0}, 2, true, 0);
  CHECK(ToldTo(core, 1) ==
        "block 7: waiting for the coordinator to decide which contributions count");
  core.OnContribution({1, 1, 0}, 3, true, 0);
  REQUIRE(core.OnCommitted(0, {0, 1}).update);
  CHECK(ToldTo(core, 3) == "block 7: an update runs");
}

}  // namespace
}  // namespace leeway::block_core
