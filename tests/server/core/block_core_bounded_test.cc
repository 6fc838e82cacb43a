#include "server/core/block_core.h"
#include "tests/catch.h"
#include "tests/server/core/started.h"

namespace leeway::block_core_bounded {
namespace {

TEST_CASE("bounded: a reader waits for the slowest, and is told its staleness") {
  BlockCore core = Started(Bounded(2, 1));
  auto hand_in = [&](uint32_t rank, uint64_t clock) {
    REQUIRE(core.OnContribution({rank, 1, clock}, 10 * rank + clock, true, 0).update);
    return core.OnApplied();
  };
  Decisions first = hand_in(0, 0);
  REQUIRE(first.answers.size() == 1);
  CHECK(first.answers[0].staleness == 1);
  CHECK(hand_in(0, 1).answers.empty());  // would start clock 2, but rank 1 is at 0
  Decisions freed = hand_in(1, 0);
  CHECK(freed.answers.size() == 2);
}

TEST_CASE("bounded: who is lost holds nobody up, and does again when it is back") {
  BlockCore core = Started(Bounded(2, 0));
  core.OnContribution({0, 1, 0}, 1, true, 0);
  CHECK(core.OnApplied().answers.empty());
  CHECK(core.OnSetLive(1, false).answers.size() == 1);
  core.OnSetLive(1, true);
  core.OnContribution({0, 1, 1}, 2, true, 0);
  CHECK(core.OnApplied().answers.empty());
}

TEST_CASE("bounded: who is held up goes on when the slowest has come far enough, and not before") {
  constexpr uint32_t kRanks = 50;
  BlockCore core = Started(Bounded(kRanks, 2));
  const auto push = [&](uint32_t rank, uint64_t clock) {
    Decisions taken = core.OnContribution({rank, 1, clock}, 1000 * clock + rank, true, 0);
    REQUIRE(taken.update);
    return core.OnApplied().answers;
  };
  for (uint64_t clock = 0; clock < 3; ++clock) {
    for (uint32_t rank = 1; rank < kRanks; ++rank) {
      // They would start clock 3 while rank 0 is at clock 0: one too many.
      CHECK(push(rank, clock).size() == (clock < 2 ? 1 : 0));
    }
  }
  CHECK(core.has_waiters());
  const auto released = push(0, 0);
  CHECK(released.size() == kRanks);
  for (const Answer& answer : released) CHECK(answer.staleness <= 2);
  CHECK_FALSE(core.has_waiters());
}

TEST_CASE("bounded: who is held up is let go when the slowest is lost, and told when it waits") {
  BlockCore core = Started(Bounded(3, 0));
  const auto push = [&](uint32_t rank, uint64_t clock, RequestId request, uint64_t now) {
    REQUIRE(core.OnContribution({rank, 1, clock}, request, true, now).update);
    return core.OnApplied().answers.size();
  };
  CHECK(push(1, 0, 1, 10) == 0);
  CHECK(push(2, 0, 2, 20) == 0);
  const Decisions late = core.OnTick(10);
  CHECK(OnlyRefusal(late) == absl::StatusCode::kUnavailable);
  CHECK(late.refusals[0].request == 1);
  CHECK(late.refusals[0].status.message() == "block 7, clock 1: waiting for worker 0 (at clock 0)");
  CHECK(core.has_waiters());
  CHECK(core.OnSetLive(0, false).answers.size() == 1);
  CHECK_FALSE(core.has_waiters());
}

}  // namespace
}  // namespace leeway::block_core_bounded
