// Contributions that want no weights back: in every mode they are applied once they are answered.
#include <vector>

#include "server/core/block_core.h"
#include "tests/catch.h"
#include "tests/server/core/started.h"

namespace leeway::block_core_push {
namespace {

// Each mode with two workers; s = 0, so that a reader waits for the other worker.
std::vector<ConsistencyRules> EveryMode() {
  std::vector<ConsistencyRules> all = {Sync(2), Bounded(2, 0), Async(2)};
  for (size_t i = all.size(); i-- > 0;) {
    all.push_back(all[i]);
    all.back().elastic = true;
  }
  return all;
}

// Brings the block to clock 1 of both ranks; it then waits for rank 1's contribution of clock 1.
BlockCore AtClock1(const ConsistencyRules& rules) {
  BlockCore core = Started(rules);
  for (const uint32_t rank : {0, 1}) {
    core.OnContribution({rank, 1, 0}, rank, false, 0);
    if (rules.mode != Consistency::kSync || rank == 1) core.OnApplied();
  }
  REQUIRE(core.progress().clocks == std::vector<uint64_t>{1, 1});
  return core;
}

TEST_CASE("push: answered when it is applied, not when it is accepted, in every mode") {
  for (const ConsistencyRules& rules : EveryMode()) {
    BlockCore core = AtClock1(rules);
    const Decisions pushed = core.OnContribution({0, 1, 1}, 10, false, 0);
    CHECK(pushed.accepted);
    CHECK(pushed.answers.empty());
    CHECK(core.has_waiters());
    if (rules.mode == Consistency::kSync) {
      CHECK_FALSE(pushed.update);
      CHECK(core.OnContribution({1, 1, 1}, 11, false, 0).answers.empty());
    }
    const Decisions applied = core.OnApplied();
    REQUIRE_FALSE(applied.answers.empty());
    CHECK(applied.answers[0].request == 10);
    CHECK_FALSE(applied.answers[0].duplicate);
    CHECK(applied.answers[0].which == Readable::kCurrent);
    CHECK(core.progress().clocks[0] == 2);
    CHECK_FALSE(core.has_waiters());
  }
}

TEST_CASE("push: one that waits behind another's update is answered after its own") {
  for (const ConsistencyRules& rules : {Bounded(2, 0), Async(2)}) {
    BlockCore core = Started(rules);
    REQUIRE(core.OnContribution({1, 1, 0}, 1, false, 0).update);
    CHECK_FALSE(core.OnContribution({0, 1, 0}, 2, false, 0).update);
    // Clocks may follow each other without a read in between.
    CHECK(core.OnContribution({0, 1, 1}, 3, false, 0).accepted);
    for (const RequestId request : {1, 2, 3}) {
      const Decisions applied = core.OnApplied();
      REQUIRE(applied.answers.size() == 1);
      CHECK(applied.answers[0].request == request);
    }
  }
}

TEST_CASE("push: repeated, it waits like the first, and later is a duplicate however late") {
  for (const ConsistencyRules& rules : EveryMode()) {
    BlockCore core = AtClock1(rules);
    for (uint64_t clock = 1; clock < 4; ++clock) {
      core.OnContribution({0, 1, clock}, 10, false, 0);
      const Decisions again = core.OnContribution({0, 1, clock}, 11, false, 0);
      CHECK_FALSE(again.accepted);
      CHECK(again.answers.empty());
      core.OnContribution({1, 1, clock}, 12, false, 0);
      const Decisions applied = core.OnApplied();
      REQUIRE(applied.answers.size() >= 2);
      CHECK_FALSE(applied.answers[0].duplicate);
      CHECK(applied.answers[1].duplicate);
      if (rules.mode != Consistency::kSync) core.OnApplied();
    }
    // The version for it is not kept any more, and the contribution asks for none.
    for (uint64_t clock = 0; clock < 4; ++clock) {
      const Decisions late = core.OnContribution({0, 1, clock}, 13, false, 0);
      REQUIRE(late.answers.size() == 1);
      CHECK(late.answers[0].duplicate);
      CHECK_FALSE(late.accepted);
    }
  }
}

TEST_CASE("push: who takes a block over knows which were answered, and wants the others") {
  for (const ConsistencyRules& rules : EveryMode()) {
    BlockCore before = AtClock1(rules);
    before.OnContribution({0, 1, 1}, 10, false, 0);
    // The owner dies before the update is done; no worker was answered.
    BlockCore core(7, rules);
    core.OnInitialized(before.progress(), rules.mode == Consistency::kSync);
    const Decisions answered = core.OnContribution({0, 1, 0}, 1, false, 0);
    REQUIRE(answered.answers.size() == 1);
    CHECK(answered.answers[0].duplicate);
    const Decisions again = core.OnContribution({0, 1, 1}, 2, false, 0);
    CHECK(again.accepted);
    CHECK(again.answers.empty());
  }
}

TEST_CASE("push: what is refused for its values is refused to whoever pushed it") {
  for (const ConsistencyRules& rules : EveryMode()) {
    BlockCore core = Started(rules);
    core.OnContribution({0, 1, 0}, 1, false, 0);
    if (rules.mode == Consistency::kSync) core.OnContribution({1, 1, 0}, 2, false, 0);
    const Decisions rejected = core.OnRejected({{1, absl::InvalidArgumentError("not finite")}});
    CHECK(OnlyRefusal(rejected) == absl::StatusCode::kInvalidArgument);
    CHECK(rejected.refusals[0].request == 1);
    CHECK(core.OnContribution({0, 1, 0}, 3, false, 0).accepted);
  }
}

TEST_CASE("push: who waits for its own update alone is not told of others who are behind") {
  for (const ConsistencyRules& rules : {Bounded(2, 0), Async(2)}) {
    BlockCore core = AtClock1(rules);
    core.OnContribution({0, 1, 1}, 1, false, 5);
    core.OnContribution({0, 1, 1}, 2, true, 5);
    const Decisions late = core.OnTick(5);
    REQUIRE(late.refusals.size() == 2);
    CHECK(late.refusals[0].status.message() == "block 7, clock 2: an update runs");
    const bool bounded = rules.mode == Consistency::kBounded;
    CHECK(late.refusals[1].status.message() ==
          (bounded ? "block 7, clock 2: waiting for worker 0 (at clock 2), worker 1 (at clock 1)"
                   : "block 7, clock 2: an update runs"));
  }
}

TEST_CASE("push: in sync mode who waits is told for whom") {
  BlockCore core = Started(Sync(2));
  core.OnContribution({0, 1, 0}, 1, false, 5);
  CHECK(core.OnTick(5).refusals.at(0).status.message() ==
        "block 7, clock 1: waiting for worker 1 (at clock 0)");
}

TEST_CASE("push, committed sets: answered when it is applied, who is not in the set is told") {
  ConsistencyRules rules = Sync(3);
  rules.committed_sets = true;
  BlockCore core = Started(rules);
  for (const uint32_t rank : {0, 1, 2}) {
    CHECK(core.OnContribution({rank, 1, 0}, rank, false, 0).answers.empty());
  }
  const Decisions committed = core.OnCommitted(0, {0, 2});
  CHECK(committed.answers.empty());
  REQUIRE(committed.refusals.size() == 1);
  CHECK(committed.refusals[0].request == 1);
  CHECK(absl::IsAlreadyExists(committed.refusals[0].status));
  CHECK(core.OnApplied().answers.size() == 2);
}

}  // namespace
}  // namespace leeway::block_core_push
