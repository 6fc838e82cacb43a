
#include "server/core/block_core.h"
#include "tests/catch.h"
#include "tests/server/core/started.h"

namespace leeway::block_core_sets {
namespace {

constexpr auto kTooLate = absl::StatusCode::kAlreadyExists;

ConsistencyRules Sets(uint32_t workers) {
  ConsistencyRules rules = Sync(workers);
  rules.committed_sets = true;
  return rules;
}

// A block whose clock 0 consists of ranks 0 and 2 of 3.
BlockCore WithoutRank1() {
  BlockCore core = Started(Sets(3));
  core.OnContribution({2, 1, 0}, 102, true, 0);
  core.OnContribution({0, 1, 0}, 100, true, 0);
  core.OnCommitted(0, {0, 2});
  core.OnApplied();
  return core;
}

TEST_CASE("committed sets: nothing is applied before the set is known, not even everybody's") {
  BlockCore core = Started(Sets(2));
  CHECK(core.OnContribution({0, 1, 0}, 1, true, 0).accepted);
  CHECK_FALSE(core.OnContribution({1, 1, 0}, 2, true, 0).update);
  const Decisions committed = core.OnCommitted(0, {0, 1});
  REQUIRE(committed.update);
  CHECK(committed.update->contributions == RequestIds{1, 2});
  CHECK(core.OnApplied().answers.size() == 2);
}

TEST_CASE("committed sets: a set that was known beforehand takes no others when its clock comes") {
  BlockCore core = Started(Sets(3));
  core.OnContribution({2, 1, 0}, 102, true, 0);
  core.OnContribution({0, 1, 0}, 100, true, 0);
  REQUIRE(core.OnCommitted(0, {0, 2}).update);
  core.OnCommitted(1, {0, 2});
  core.OnApplied();
  CHECK_FALSE(core.OnContribution({1, 1, 1}, 201, true, 0).accepted);
  CHECK_FALSE(core.OnContribution({0, 1, 1}, 200, true, 0).update);
  CHECK(core.OnContribution({2, 1, 1}, 202, true, 0).update);
}

TEST_CASE("committed sets: what is held and not in the set is dropped, and its sender told") {
  BlockCore core = Started(Sets(3));
  core.OnContribution({2, 1, 0}, 102, true, 0);
  core.OnContribution({1, 1, 0}, 101, true, 0);
  core.OnContribution({0, 1, 0}, 100, true, 0);
  const Decisions committed = core.OnCommitted(0, {0, 2});
  REQUIRE(committed.update);
  CHECK(committed.update->contributions == RequestIds{100, 102});
  CHECK(committed.dropped == RequestIds{101});
  REQUIRE(committed.refusals.size() == 1);
  CHECK(committed.refusals[0].request == 101);
  CHECK(committed.refusals[0].status.code() == kTooLate);
  CHECK(core.OnApplied().answers.size() == 2);
}

TEST_CASE("committed sets: what comes after the set is refused, and so is its repetition") {
  BlockCore core = Started(Sets(3));
  core.OnContribution({2, 1, 0}, 102, true, 0);
  core.OnContribution({0, 1, 0}, 100, true, 0);
  REQUIRE(core.OnCommitted(0, {0, 2}).update);
  // While the update is running, when it is done, and later.
  CHECK(OnlyRefusal(core.OnContribution({1, 1, 0}, 101, true, 0)) == kTooLate);
  core.OnApplied();
  CHECK(OnlyRefusal(core.OnContribution({1, 1, 0}, 101, true, 0)) == kTooLate);
  CHECK(OnlyRefusal(core.OnContribution({1, 1, 0}, 101, false, 0)) == kTooLate);
  CHECK(core.progress().version == 1);
}

TEST_CASE("committed sets: a repeated contribution that counts is answered like the first") {
  BlockCore core = WithoutRank1();
  const Decisions again = core.OnContribution({2, 1, 0}, 103, true, 0);
  REQUIRE(again.answers.size() == 1);
  CHECK(again.answers[0].duplicate);
  CHECK(core.counted(2) == 1);
  CHECK(core.counted(1) == 0);
}

TEST_CASE("committed sets: who takes a block over knows which last contributions counted") {
  BlockCore core(3, Sets(3));
  core.OnInitialized(WithoutRank1().progress());
  const Decisions again = core.OnContribution({2, 1, 0}, 103, false, 0);
  REQUIRE(again.answers.size() == 1);
  CHECK(again.answers[0].duplicate);
  CHECK(OnlyRefusal(core.OnContribution({1, 1, 0}, 101, false, 0)) == kTooLate);
  CHECK(core.counted(2) == 1);
}

TEST_CASE("committed sets: who was left out goes on at the next clock like everybody else") {
  BlockCore core = WithoutRank1();
  CHECK(core.OnAttach(1, 1).value() == 1);
  CHECK(core.OnRead({1, 1, 1}, 9, 0).answers.size() == 1);
  CHECK(core.OnContribution({1, 1, 1}, 111, true, 0).accepted);
  CHECK(core.OnContribution({0, 1, 1}, 110, true, 0).accepted);
  const Decisions committed = core.OnCommitted(1, {0, 1});
  REQUIRE(committed.update);
  CHECK(committed.update->contributions == RequestIds{110, 111});
}

TEST_CASE("committed sets: who was left out is told so before the update is made") {
  BlockCore core = Started(Sets(3));
  core.OnContribution({0, 1, 0}, 100, true, 0);
  REQUIRE(core.OnCommitted(0, {0}).update);
  CHECK(core.OnAttach(0, 1).value() == 0);
  CHECK(core.OnAttach(1, 1).value() == 1);
  CHECK(core.OnRead({1, 1, 1}, 9, 0).answers.empty());
  CHECK(core.OnApplied().answers.size() == 2);
}

TEST_CASE("committed sets: who was left out may wait where nothing is known of that yet") {
  BlockCore core = Started(Sets(3));
  CHECK(core.OnRead({1, 1, 1}, 9, 0).refusals.empty());
  CHECK(OnlyRefusal(core.OnRead({1, 1, 2}, 10, 0)) == absl::StatusCode::kFailedPrecondition);
  core.OnContribution({0, 1, 0}, 100, false, 0);
  REQUIRE(core.OnCommitted(0, {0}).update);
  const Decisions applied = core.OnApplied();
  REQUIRE(applied.answers.size() == 2);
  CHECK(applied.answers[0].request == 9);
}

TEST_CASE("committed sets: a version that is kept no more is refused as too late") {
  BlockCore core = WithoutRank1();
  for (uint64_t clock = 1; clock < 3; ++clock) {
    core.OnContribution({0, 1, clock}, 100 + clock, false, 0);
    REQUIRE(core.OnCommitted(clock, {0}).update);
    core.OnApplied();
  }
  CHECK(OnlyRefusal(core.OnRead({1, 1, 1}, 9, 0)) == kTooLate);
  // Rank 2 counts in clock 0, but its answer is not kept any more.
  CHECK(OnlyRefusal(core.OnContribution({2, 1, 0}, 9, true, 0)) == kTooLate);
  CHECK(core.OnRead({1, 1, 2}, 9, 0).answers.size() == 1);
  CHECK(core.OnAttach(1, 1).value() == 3);
}

TEST_CASE("committed sets, elastic: the state that a contribution found is that one or none") {
  ConsistencyRules rules = Sets(2);
  rules.elastic = true;
  BlockCore core = Started(rules);
  for (const uint32_t rank : {0u, 1u}) core.OnContribution({rank, 1, 0}, 100 + rank, false, 0);
  REQUIRE(core.OnCommitted(0, {0, 1}).update);
  core.OnApplied();
  CHECK(core.OnContribution({1, 1, 0}, 7, true, 0).answers.at(0).which == Readable::kPrevious);
  core.OnContribution({0, 1, 1}, 110, false, 0);
  REQUIRE(core.OnCommitted(1, {0}).update);
  core.OnApplied();
  // The answer was lost, and the others have gone on since.
  CHECK(OnlyRefusal(core.OnContribution({1, 1, 0}, 8, true, 0)) == kTooLate);
}

TEST_CASE("committed sets: a set that comes before its contributions waits for them alone") {
  BlockCore core = Started(Sets(3));
  core.OnContribution({1, 1, 0}, 101, true, 0);
  const Decisions committed = core.OnCommitted(0, {0, 2});
  CHECK_FALSE(committed.update);
  CHECK(committed.dropped == RequestIds{101});
  CHECK_FALSE(core.OnContribution({2, 1, 0}, 102, true, 0).update);
  CHECK(core.OnContribution({0, 1, 0}, 100, true, 0).update);
}

TEST_CASE("committed sets: a repeated or older set changes nothing") {
  BlockCore core = WithoutRank1();
  core.OnContribution({0, 1, 1}, 110, true, 0);
  CHECK_FALSE(core.OnCommitted(0, {0, 1, 2}).update);
  REQUIRE(core.OnCommitted(1, {0}).update);
  CHECK_FALSE(core.OnCommitted(1, {0, 1}).update);
}

TEST_CASE("committed sets: a rejected contribution of the set is waited for, and the set stays") {
  BlockCore core = Started(Sets(2));
  core.OnContribution({0, 1, 0}, 1, true, 0);
  core.OnContribution({1, 1, 0}, 2, true, 0);
  core.OnCommitted(0, {0, 1});
  CHECK_FALSE(core.OnRejected({{2, absl::InvalidArgumentError("nan")}}).update);
  CHECK(core.OnAttach(1, 2).value() == 0);
  const Decisions again = core.OnContribution({1, 2, 0}, 3, true, 0);
  REQUIRE(again.update);
  CHECK(again.update->contributions == RequestIds{1, 3});
}

TEST_CASE("committed sets: who waits is told that the coordinator is waited for") {
  BlockCore core = Started(Sets(2));
  core.OnContribution({0, 1, 0}, 1, true, 0);
  core.OnContribution({1, 1, 0}, 2, true, 0);
  const Decisions tick = core.OnTick(1);
  REQUIRE(tick.refusals.size() == 2);
  const std::string told(tick.refusals[0].status.message());
  CHECK(told.find("the coordinator") != std::string::npos);
}

}  // namespace
}  // namespace leeway::block_core_sets
