// Committed sets without the rest of the coordinator.
#include "server/coordinator/core/committed_sets.h"
#include "tests/catch.h"
#include "tests/server/coordinator/core/scenario.h"
#include "tests/server/coordinator/core/taken.h"

namespace leeway::committed_sets_part {
namespace {

constexpr Time kNow = Time(std::chrono::seconds(1000));

// Two shards, and three workers of which two are enough.
struct Sets {
  Sets() { sets.Restart(4, 2); }
  static CoordinatorOptions Options() {
    CoordinatorOptions options = TestOptions({.workers = 3});
    options.job.mutable_consistency()->set_backup_workers(1);
    options.job.mutable_limits()->set_grace_seconds(1);
    return options;
  }
  void Held(uint32_t shard, const std::vector<uint32_t>& ranks) {
    v1::ContributionsHeldRequest request;
    request.set_index(shard);
    request.set_clock(sets.next());
    for (const uint32_t rank : ranks) request.add_ranks(rank);
    sets.TakeHeld(request, 7, kNow);
  }
  std::vector<CommitSet> Next(bool open = true) {
    sets.CommitNext(open, live, 7, kNow);
    return Taken<CommitSet>(commands);
  }

  const JobFacts facts{Options()};
  Commands commands;
  CommittedSets sets{facts, commands};
  std::vector<bool> live{true, true, true};
};

TEST_CASE("committed sets: a clock gets the set that every shard holds, in order") {
  Sets of;
  of.Held(0, {0, 1, 2});
  CHECK(of.Next().empty());
  of.Held(1, {0, 1, 2});
  CHECK(of.Next() == std::vector<CommitSet>{{7, 4, {0, 1, 2}}});
  CHECK(of.sets.next() == 5);
  CHECK(of.Next().empty());
}

TEST_CASE("committed sets: none while clocks get none any more") {
  Sets of;
  for (const uint32_t shard : {0, 1}) of.Held(shard, {0, 1, 2});
  CHECK(of.Next(false).empty());
  CHECK(of.sets.next() == 4);
  CHECK(of.Next().size() == 1);
}

TEST_CASE("committed sets: a job in lockstep has none") {
  const JobFacts facts{TestOptions({})};
  Commands commands;
  CommittedSets sets(facts, commands);
  sets.Restart(0, 1);
  sets.CommitNext(true, {true, true}, 0, kNow);
  CHECK(commands.Take().empty());
}

TEST_CASE("committed sets: what a lost rank gave to a shard that lacks the set is lost") {
  Sets of;
  Membership ranks(3, 0, std::chrono::seconds(10));
  for (const uint32_t shard : {0, 1}) of.Held(shard, {0, 1, 2});
  CHECK(of.Next().size() == 1);
  of.live[1] = false;
  CHECK_FALSE(of.sets.LostContribution(ranks, of.live));
  of.sets.MarkLacking();
  const auto lost = of.sets.LostContribution(ranks, of.live);
  REQUIRE(lost);
  CHECK(lost->rank == 1);
  CHECK(lost->clock == 4);
  of.sets.CommitAgain(8);
  CHECK(Taken<CommitSet>(of.commands) == std::vector<CommitSet>{{8, 4, {0, 1, 2}}});
  of.sets.Restart(4, 2);
  CHECK_FALSE(of.sets.LostContribution(ranks, of.live));
  of.sets.CommitAgain(8);
  CHECK(of.commands.Take().empty());
}

}  // namespace
}  // namespace leeway::committed_sets_part
