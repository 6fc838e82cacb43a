#include <vector>

#include "server/core/block_core.h"
#include "tests/catch.h"
#include "tests/server/core/started.h"

namespace leeway::block_core_sync {
namespace {

TEST_CASE(
    "sync: the update begins with the last contribution, in rank order, and frees the readers") {
  BlockCore core = Started(Sync(3));
  CHECK_FALSE(core.OnContribution({2, 1, 0}, 102, true, 0).update);
  CHECK_FALSE(core.OnContribution({0, 1, 0}, 100, true, 0).update);
  Decisions last = core.OnContribution({1, 1, 0}, 101, true, 0);
  REQUIRE(last.update);
  CHECK(last.update->clock == 0);
  CHECK(last.update->contributions == RequestIds{100, 101, 102});
  CHECK(last.answers.empty());
  Decisions applied = core.OnApplied();
  REQUIRE(applied.answers.size() == 3);
  for (const Answer& answer : applied.answers) {
    CHECK(answer.which == Readable::kCurrent);
    CHECK(answer.staleness == 0);
  }
  CHECK(core.progress().version == 1);
}

TEST_CASE("sync: a repeated contribution is not accepted again and waits like the first") {
  BlockCore core = Started(Sync(2));
  CHECK(core.OnContribution({0, 1, 0}, 1, true, 0).accepted);
  CHECK_FALSE(core.OnContribution({0, 1, 0}, 2, true, 0).accepted);
  REQUIRE(core.OnContribution({1, 1, 0}, 3, true, 0).update);
  CHECK(core.OnApplied().answers.size() == 3);
  Decisions late = core.OnContribution({0, 1, 0}, 4, true, 0);
  CHECK_FALSE(late.accepted);
  REQUIRE(late.answers.size() == 1);
  CHECK(late.answers[0].duplicate);
}

TEST_CASE("sync: a worker that died in between reads the version before, and only that one") {
  BlockCore core = Started(Sync(2));
  for (uint64_t clock = 0; clock < 2; ++clock) {
    core.OnContribution({0, 1, clock}, 1, false, 0);
    REQUIRE(core.OnContribution({1, 1, clock}, 2, false, 0).update);
    core.OnApplied();
  }
  auto which = [&](uint64_t clock) {
    Decisions decisions = core.OnRead({0, 2, clock}, 9, 0);
    REQUIRE(decisions.answers.size() == 1);
    return decisions.answers[0].which;
  };
  CHECK(which(2) == Readable::kCurrent);
  CHECK(which(1) == Readable::kPrevious);
  CHECK(OnlyRefusal(core.OnRead({0, 2, 0}, 9, 0)) == absl::StatusCode::kFailedPrecondition);
}

TEST_CASE("sync with an elastic exchange answers the version before, also to a repeated request") {
  ConsistencyRules rules = Sync(1);
  rules.elastic = true;
  BlockCore core = Started(rules);
  REQUIRE(core.OnContribution({0, 1, 0}, 1, true, 0).update);
  Decisions applied = core.OnApplied();
  REQUIRE(applied.answers.size() == 1);
  CHECK(applied.answers[0].which == Readable::kPrevious);
  Decisions repeated = core.OnContribution({0, 1, 0}, 2, true, 0);
  REQUIRE(repeated.answers.size() == 1);
  CHECK(repeated.answers[0].which == Readable::kPrevious);
}

TEST_CASE("sync: nobody hands in clock c + 1 before c is complete") {
  BlockCore core = Started(Sync(2));
  core.OnContribution({0, 1, 0}, 1, false, 0);
  CHECK(OnlyRefusal(core.OnContribution({0, 1, 1}, 2, false, 0)) ==
        absl::StatusCode::kFailedPrecondition);
}

TEST_CASE(
    "sync: what was before is refused where it is not kept, at the start, else an update that runs "
    "keeps nobody from it") {
  BlockCore core(7, Sync(2));
  core.OnInitialized({4, {4, 4}});
  CHECK(OnlyRefusal(core.OnRead({0, 1, 3}, 1, 0)) == absl::StatusCode::kFailedPrecondition);
  core.OnContribution({0, 1, 4}, 2, false, 0);
  REQUIRE(core.OnContribution({1, 1, 4}, 3, false, 0).update);
  CHECK(OnlyRefusal(core.OnRead({0, 1, 3}, 4, 0)) == absl::StatusCode::kFailedPrecondition);
  CHECK(core.OnRead({0, 1, 4}, 5, 0).answers.size() == 1);
  core.OnApplied();
  CHECK(core.OnRead({0, 1, 4}, 6, 0).answers.at(0).which == Readable::kPrevious);
  core.OnContribution({0, 1, 5}, 7, false, 0);
  REQUIRE(core.OnContribution({1, 1, 5}, 8, false, 0).update);
  CHECK(core.OnRead({0, 1, 4}, 9, 0).answers.at(0).which == Readable::kPrevious);
}

TEST_CASE("sync: a cut is taken at its version, once") {
  ConsistencyRules rules = Sync(1);
  rules.cut_every = 2;
  BlockCore core = Started(rules);
  std::vector<uint64_t> cuts;
  for (uint64_t clock = 0; clock < 5; ++clock) {
    core.OnContribution({0, 1, clock}, 1, false, 0);
    if (auto cut = core.OnApplied().cut) cuts.push_back(*cut);
  }
  CHECK(cuts == std::vector<uint64_t>{2, 4});
}

TEST_CASE("sync: who asked, before a checkpoint was loaded, for what it does not have is refused") {
  BlockCore core(7, Sync(2));
  CHECK(core.OnRead({0, 1, 0}, 1, 0).answers.empty());
  const Decisions decisions = core.OnInitialized({5, {5, 5}});
  CHECK(OnlyRefusal(decisions) == absl::StatusCode::kFailedPrecondition);
}

TEST_CASE("sync: a block from a replica has the version before, too") {
  BlockCore core(7, Sync(2));
  core.OnInitialized({5, {5, 5}}, true);
  const Decisions decisions = core.OnRead({0, 1, 4}, 1, 0);
  REQUIRE(decisions.answers.size() == 1);
  CHECK(decisions.answers[0].which == Readable::kPrevious);
}

}  // namespace
}  // namespace leeway::block_core_sync
