// Updates that fail: OnRejected.
#include <vector>

#include "server/core/block_core.h"
#include "tests/catch.h"
#include "tests/server/core/started.h"

namespace leeway::block_core_rejected {
namespace {

std::vector<Refusal> Bad(const RequestIds& requests) {
  std::vector<Refusal> refusals;
  for (RequestId request : requests) {
    refusals.push_back({request, absl::InvalidArgumentError("not finite")});
  }
  return refusals;
}

TEST_CASE("sync: one of a set is rejected, the others go on waiting for it") {
  BlockCore core = Started(Sync(3));
  core.OnContribution({2, 1, 0}, 12, true, 0);
  core.OnContribution({0, 1, 0}, 10, true, 0);
  REQUIRE(core.OnContribution({1, 1, 0}, 11, true, 0).update);
  const Decisions rejected = core.OnRejected(Bad({11}));
  CHECK(OnlyRefusal(rejected) == absl::StatusCode::kInvalidArgument);
  CHECK(rejected.refusals[0].request == 11);
  CHECK_FALSE(rejected.update);
  CHECK(rejected.dropped.empty());
  CHECK(core.progress().version == 0);
  CHECK(core.OnAttach(1, 1).value() == 0);
  // The other contributions are still held: repeating one is a duplicate.
  CHECK_FALSE(core.OnContribution({0, 1, 0}, 20, true, 0).accepted);
  const Decisions again = core.OnContribution({1, 1, 0}, 21, true, 0);
  REQUIRE(again.update);
  CHECK(again.update->contributions == RequestIds{10, 21, 12});
  CHECK(core.OnApplied().answers.size() == 4);
  CHECK(core.progress().version == 1);
}

TEST_CASE("sync: where all of a set are rejected, all may hand in that clock again") {
  BlockCore core = Started(Sync(2));
  core.OnContribution({0, 1, 0}, 1, true, 0);
  core.OnContribution({1, 1, 0}, 2, true, 0);
  CHECK(core.OnRejected(Bad({1, 2})).refusals.size() == 2);
  CHECK_FALSE(core.has_waiters());
  core.OnContribution({1, 1, 0}, 3, true, 0);
  CHECK(core.OnContribution({0, 1, 0}, 4, true, 0).update);
}

TEST_CASE("sync: a rejected update leaves the version before the current one readable") {
  BlockCore core = Started(Sync(1));
  for (uint64_t clock = 0; clock < 2; ++clock) {
    core.OnContribution({0, 1, clock}, clock, true, 0);
    core.OnApplied();
  }
  core.OnContribution({0, 1, 2}, 9, true, 0);
  core.OnRejected(Bad({9}));
  CHECK(core.OnRead({0, 1, 1}, 10, 0).answers.at(0).which == Readable::kPrevious);
  CHECK(core.OnRead({0, 1, 2}, 11, 0).answers.at(0).which == Readable::kCurrent);
}

TEST_CASE("async: the next contribution's turn comes, and the rejected one's sender is told") {
  BlockCore core = Started(Async(2));
  REQUIRE(core.OnContribution({0, 1, 0}, 1, true, 0).update);
  core.OnContribution({1, 1, 0}, 2, true, 0);
  const Decisions rejected = core.OnRejected(Bad({1}));
  REQUIRE(rejected.refusals.size() == 1);
  CHECK(rejected.refusals[0].request == 1);
  REQUIRE(rejected.update);
  CHECK(rejected.update->contributions == RequestIds{2});
  CHECK(core.OnApplied().answers.size() == 1);
  CHECK(core.progress().clocks == std::vector<uint64_t>{0, 1});
  CHECK(core.OnContribution({0, 1, 0}, 3, true, 0).accepted);
}

TEST_CASE("what a rank has handed in after a rejected contribution goes with it") {
  for (const ConsistencyRules& rules : {Async(2), Bounded(2, 4)}) {
    BlockCore core = Started(rules);
    core.OnContribution({0, 1, 0}, 1, true, 0);
    core.OnContribution({0, 1, 1}, 2, true, 0);
    core.OnContribution({1, 1, 0}, 3, true, 0);
    const Decisions rejected = core.OnRejected(Bad({1}));
    CHECK(rejected.dropped == RequestIds{2});
    CHECK(rejected.refusals.size() == 2);
    REQUIRE(rejected.update);
    CHECK(rejected.update->contributions == RequestIds{3});
    CHECK(OnlyRefusal(core.OnContribution({0, 1, 1}, 4, true, 0)) ==
          absl::StatusCode::kFailedPrecondition);
  }
}

TEST_CASE("who repeats a contribution is refused with it, who reads what is there is not") {
  BlockCore core = Started(Async(2));
  REQUIRE(core.OnContribution({0, 1, 0}, 1, true, 0).update);
  CHECK_FALSE(core.OnContribution({0, 1, 0}, 2, true, 0).accepted);
  CHECK(core.OnRead({0, 1, 0}, 3, 0).answers.size() == 1);
  CHECK(core.OnRejected(Bad({1})).refusals.size() == 2);
  CHECK_FALSE(core.has_waiters());
}

}  // namespace
}  // namespace leeway::block_core_rejected
