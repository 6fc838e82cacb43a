// One contribution that stands for those of all ranks (ExchangeHeader.of_all).
#include "server/core/block_core.h"
#include "tests/catch.h"
#include "tests/server/core/started.h"

namespace leeway::block_core_of_all {
namespace {

using Catch::Contains;

TEST_CASE("of all: one contribution completes the clock for every rank") {
  BlockCore core = Started(Sync(3));
  for (uint64_t clock = 0; clock < 3; ++clock) {
    const Decisions decisions = core.OnContributionOfAll({1, 1, clock}, 10 + clock, true, 0);
    CHECK(decisions.accepted);
    REQUIRE(decisions.update);
    CHECK(decisions.update->clock == clock);
    CHECK(decisions.update->contributions == RequestIds{10 + clock});
    CHECK(core.OnApplied().answers.size() == 1);
    CHECK(core.progress().clocks == std::vector<uint64_t>(3, clock + 1));
  }
  CHECK(core.progress().version == 3);
  // The others may read the version that they have not sent anything for.
  CHECK(core.OnRead({2, 1, 3}, 20, 0).answers.size() == 1);
}

TEST_CASE("of all: a repetition by any life of any rank is a duplicate") {
  BlockCore core = Started(Sync(3));
  REQUIRE(core.OnContributionOfAll({1, 1, 0}, 10, true, 0).update);
  const bool applied = GENERATE(false, true);
  if (applied) core.OnApplied();
  for (const Sender sender : {Sender{1, 1, 0}, Sender{1, 2, 0}, Sender{0, 1, 0}}) {
    const Decisions again = core.OnContributionOfAll(sender, 11, true, 0);
    CHECK_FALSE(again.accepted);
    CHECK_FALSE(again.update);
    CHECK(again.refusals.empty());
    CHECK(again.answers.size() == (applied ? 1 : 0));
  }
  if (!applied) core.OnApplied();
  CHECK(core.progress().version == 1);
}

TEST_CASE("of all: a life that attaches is told the clock that is not applied yet, or the next") {
  BlockCore core = Started(Sync(3));
  REQUIRE(core.OnContributionOfAll({1, 1, 0}, 10, true, 0).update);
  CHECK(*core.OnAttach(1, 2) == 0);
  CHECK(*core.OnAttach(2, 2) == 0);
  const Decisions again = core.OnContributionOfAll({1, 2, 0}, 11, true, 0);
  CHECK_FALSE(again.accepted);
  const Decisions applied = core.OnApplied();
  // The request of the earlier life is refused, and that of the next life is answered.
  REQUIRE(applied.refusals.size() == 1);
  CHECK(absl::IsAborted(applied.refusals[0].status));
  REQUIRE(applied.answers.size() == 1);
  CHECK(applied.answers[0].request == 11);
  CHECK(*core.OnAttach(1, 3) == 1);
  CHECK(*core.OnAttach(0, 3) == 1);
  CHECK(core.OnContributionOfAll({0, 3, 1}, 12, true, 0).update);
}

TEST_CASE("of all: a rank's own contribution and one of all exclude each other") {
  BlockCore core = Started(Sync(3));
  CHECK(core.OnContribution({2, 1, 0}, 10, true, 0).accepted);
  const Decisions refused = core.OnContributionOfAll({1, 1, 0}, 11, true, 0);
  CHECK(OnlyRefusal(refused) == absl::StatusCode::kInvalidArgument);
  CHECK_THAT(std::string(refused.refusals[0].status.message()),
             Contains("worker 1 sends the mean of all contributions of clock 0 for block 7") &&
                 Contains("worker 2 has sent its own"));
  CHECK(core.OnContribution({0, 1, 0}, 12, true, 0).accepted);
  REQUIRE(core.OnContribution({1, 1, 0}, 13, true, 0).update);
  core.OnApplied();
  // After one of all, a rank's own is a repetition of what it contains.
  REQUIRE(core.OnContributionOfAll({1, 1, 1}, 14, true, 0).update);
  CHECK_FALSE(core.OnContribution({2, 1, 1}, 15, true, 0).accepted);
  CHECK(core.OnApplied().answers.size() == 2);
  CHECK(core.progress().version == 2);
}

TEST_CASE("of all: one that cannot be applied is forgotten for every rank") {
  BlockCore core = Started(Sync(3));
  REQUIRE(core.OnContributionOfAll({1, 1, 0}, 10, true, 0).update);
  core.OnRead({2, 1, 1}, 11, 0);
  const Decisions rejected = core.OnRejected({{10, absl::InvalidArgumentError("not finite")}});
  REQUIRE(rejected.refusals.size() == 1);
  CHECK(rejected.refusals[0].request == 10);
  for (const uint32_t rank : {0u, 1u, 2u}) CHECK_FALSE(core.has(rank, 0));
  REQUIRE(core.OnContributionOfAll({0, 1, 0}, 12, true, 0).update);
  // The reader was not to blame, and still waits.
  CHECK(core.OnApplied().answers.size() == 2);
}

TEST_CASE("of all: clocks are sent in order") {
  BlockCore core = Started(Sync(2));
  CHECK(OnlyRefusal(core.OnContributionOfAll({1, 1, 1}, 10, true, 0)) ==
        absl::StatusCode::kFailedPrecondition);
  REQUIRE(core.OnContributionOfAll({1, 1, 0}, 11, true, 0).update);
  CHECK(OnlyRefusal(core.OnContributionOfAll({1, 1, 1}, 12, true, 0)) ==
        absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace leeway::block_core_of_all
