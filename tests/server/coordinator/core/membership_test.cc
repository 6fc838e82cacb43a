// Which process holds which rank, and in which life. Whole jobs are tested in start_test.cc and in
// the simulator.
#include "server/coordinator/core/membership.h"

#include <set>

#include "tests/catch.h"

namespace leeway::membership {
namespace {

using Ranks = std::vector<uint32_t>;
using std::chrono::seconds;

constexpr Duration kLease = seconds(10);
constexpr Time kBegin = Time(seconds(1000));

Identity Process(uint32_t pid) { return {"host", pid, 7}; }

// Processes 100, 101, ... hold the ranks.
Membership Held(uint32_t ranks) {
  Membership members(ranks, 50, kLease);
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    REQUIRE(members.Claim(rank, Process(100 + rank), false, kBegin).ok());
  }
  return members;
}

TEST_CASE("membership: free ranks are given out from the lowest on, then lost ones") {
  Membership members(3, 50, kLease);
  for (uint32_t rank = 0; rank < 3; ++rank) {
    const auto claimed = members.Claim({}, Process(100 + rank), false, kBegin);
    REQUIRE(claimed.ok());
    CHECK(claimed->rank == rank);
    CHECK(claimed->new_life);
    CHECK(members[rank].incarnation == 51);
  }
  CHECK(absl::IsFailedPrecondition(members.Claim({}, Process(9), false, kBegin).status()));
  members.Leave(2, RankState::kLost, 0, kBegin);
  members.Leave(1, RankState::kLost, 0, kBegin);
  CHECK(members.Claim({}, Process(9), false, kBegin)->rank == 1);
  CHECK(members[1].incarnation == 52);
}

TEST_CASE("membership: a registration that is repeated is the same life, by number or without") {
  Membership members = Held(3);
  for (const auto asked : {std::optional<uint32_t>(1), std::optional<uint32_t>()}) {
    const auto again = members.Claim(asked, Process(101), false, kBegin + seconds(1));
    REQUIRE(again.ok());
    CHECK(again->rank == 1);
    CHECK_FALSE(again->new_life);
    CHECK(members.Holder(asked, Process(101)) == 1);
  }
  CHECK(members[1].incarnation == 51);
  CHECK(members[1].seen == kBegin);
  CHECK(members.Holder(0, Process(101)) == std::nullopt);
  CHECK(members.Holder(3, Process(101)) == std::nullopt);
  CHECK(members.Holder({}, Process(9)) == std::nullopt);
  CHECK(members.Holder(0, Identity{}) == std::nullopt);
  CHECK(Membership(1, 50, kLease).Holder(0, Identity{}) == std::nullopt);
  CHECK(absl::IsInvalidArgument(members.Claim(3, Process(9), false, kBegin).status()));
}

TEST_CASE("membership: a rank that nobody has had has no incarnation") {
  Membership members(2, 50, kLease);
  CHECK(members.Incarnations() == std::vector<uint64_t>{0, 0});
  REQUIRE(members.Claim(1, Process(100), false, kBegin).ok());
  CHECK(members.Incarnations() == std::vector<uint64_t>{0, 51});
}

TEST_CASE("membership: who was replaced has nothing any more, and does not win the rank back") {
  Membership members = Held(2);
  members.Leave(0, RankState::kLost, 0, kBegin);
  const auto claimed = members.Claim(0, Process(200), false, kBegin + seconds(3));
  REQUIRE(claimed.ok());
  CHECK(claimed->new_life);
  CHECK(members[0].state == RankState::kRunning);
  CHECK(members[0].since == kBegin + seconds(3));
  CHECK(members[0].seen == kBegin + seconds(3));
  CHECK(members.Holder({}, Process(100)) == std::nullopt);
  CHECK(members.Holder({}, Process(200)) == 0);
  const absl::Status replaced = members.Claim(0, Process(100), false, kBegin).status();
  CHECK(absl::IsAborted(replaced));
  CHECK(replaced.message() ==
        "process 100 on host was worker 0, but process 200 on host has taken its place; this "
        "process must stop");
  CHECK(members[0].incarnation == 52);
}

TEST_CASE("membership: a process that takes another rank is found where it is now") {
  Membership members = Held(2);
  REQUIRE(members.Claim(1, Process(100), false, kBegin).ok());
  CHECK(members.Holder({}, Process(100)) == 1);
  // Rank 0 goes to another process. That the same process held it does not change rank 1.
  REQUIRE(members.Claim(0, Process(300), false, kBegin).ok());
  CHECK(members.Holder({}, Process(100)) == 1);
}

TEST_CASE("membership: past lives are remembered up to a bound, the newest ones") {
  Membership members(1, 50, kLease);
  for (uint32_t life = 0; life <= 65; ++life) {
    REQUIRE(members.Claim(0, Process(100 + life), false, kBegin).ok());
  }
  CHECK(members[0].past.size() == 64);
  CHECK(members[0].past.front() == Process(101));
  CHECK(members[0].past.back() == Process(164));
  CHECK(absl::IsAborted(members.Claim(0, Process(101), false, kBegin).status()));
}

TEST_CASE(
    "membership: who has left in order may stand by until that is final, who failed may not") {
  for (const RankState left : {RankState::kFinished, RankState::kStopped, RankState::kFailed}) {
    Membership members = Held(2);
    members.Leave(1, left, 7, kBegin);
    CHECK(members[1].clock == 7);
    for (const uint32_t pid : {101, 200}) {
      const absl::Status final = members.Claim(1, Process(pid), true, kBegin).status();
      CHECK(absl::IsFailedPrecondition(final) == (left == RankState::kFailed));
      CHECK(absl::IsAlreadyExists(final) == (left != RankState::kFailed));
    }
    const auto standing_by = members.Claim(1, Process(200), false, kBegin);
    CHECK(standing_by.ok() == (left != RankState::kFailed));
    CHECK(members[1].state == left);
  }
  Membership members = Held(1);
  members.Leave(0, RankState::kLost, 0, kBegin);
  CHECK(members.Claim(0, Process(200), true, kBegin).ok());
}

TEST_CASE("membership: only the newest life of a rank that somebody holds is right") {
  Membership members = Held(1);
  CHECK(members.Check(0, 51).ok());
  CHECK(absl::IsFailedPrecondition(members.Check(0, 52)));
  CHECK(absl::IsAborted(members.Check(0, 50)));
  CHECK(absl::IsInvalidArgument(members.Check(1, 51)));
  const Membership none(1, 50, kLease);
  CHECK(absl::IsFailedPrecondition(none.Check(0, 50)));
  CHECK(absl::IsFailedPrecondition(none.Check(0, 49)));
}

TEST_CASE("membership: a lease ends after its length, not with it, for those that run") {
  Membership members = Held(3);
  members.Leave(0, RankState::kFinished, 0, kBegin);
  CHECK_FALSE(members.Seen(1, kBegin + seconds(1)));
  CHECK(members.Expire(kBegin + kLease).empty());
  CHECK(members.Expire(kBegin + kLease + Duration(1)) == Ranks{2});
  CHECK(members[2].since == kBegin + kLease + Duration(1));
  CHECK(members.Expire(kBegin + kLease + Duration(1)).empty());
  CHECK(members.Seen(2, kBegin + seconds(20)));
  CHECK(members[2].state == RankState::kRunning);
  members.Forgive(kBegin + seconds(30));
  CHECK(members.Expire(kBegin + seconds(40)).empty());
  CHECK(members.Expire(kBegin + seconds(41)) == Ranks{1, 2});
}

TEST_CASE("membership: a job that goes back wants everybody again, and gives them a lease's time") {
  Membership members = Held(5);
  members.Report(0, 9);
  members.Report(0, 8);
  CHECK(members[0].clock == 9);
  members.Leave(1, RankState::kFinished, 9, kBegin);
  members.Leave(2, RankState::kStopped, 9, kBegin);
  members.Leave(3, RankState::kFailed, 3, kBegin);
  members.Leave(4, RankState::kLost, 3, kBegin);
  const Time later = kBegin + seconds(100);
  members.GoBack(6, later);
  for (uint32_t rank = 0; rank < 5; ++rank) CHECK(members[rank].clock == 6);
  CHECK(members.In({RankState::kRunning}) == Ranks{0, 1, 2});
  CHECK(members[3].state == RankState::kFailed);
  CHECK(members[4].state == RankState::kLost);
  CHECK(members[2].since == later);
  CHECK(members.Expire(later + kLease).empty());
  CHECK(members.Expire(later + kLease + Duration(1)) == Ranks{0, 1, 2});
}

TEST_CASE("membership: ranks by their states, the lowest of them where few are wanted") {
  Membership members = Held(6);
  members.Leave(1, RankState::kLost, 0, kBegin);
  members.Leave(4, RankState::kLost, 0, kBegin);
  CHECK(members.In({RankState::kRunning}) == Ranks{0, 2, 3, 5});
  CHECK(members.In({RankState::kRunning, RankState::kLost}) == Ranks{0, 1, 2, 3, 4, 5});
  CHECK(members.In({RankState::kRunning, RankState::kLost}, 3) == Ranks{0, 1, 2});
  CHECK(members.In({RankState::kRunning}, 4) == Ranks{0, 2, 3, 5});
  CHECK(members.In({RankState::kRunning}, 0).empty());
  CHECK(members.Count(RankState::kRunning) == 4);
  CHECK(members.Count(RankState::kLost) == 2);
  CHECK(members.Count(RankState::kWaiting) == 0);
  CHECK(Membership(3, 0, kLease).Count(RankState::kWaiting) == 3);
}

TEST_CASE("membership: every state has a name of its own") {
  std::set<std::string> names;
  for (size_t state = 0; state < kRankStates; ++state) {
    names.insert(RankStateName(static_cast<RankState>(state)));
  }
  CHECK(names ==
        std::set<std::string>{"waiting", "running", "lost", "finished", "stopped", "failed"});
}

}  // namespace
}  // namespace leeway::membership
