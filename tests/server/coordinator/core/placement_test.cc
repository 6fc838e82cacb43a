#include "server/coordinator/core/placement.h"

#include <algorithm>
#include <set>

#include "tests/catch.h"

namespace leeway::placement {
namespace {

void SyncAll(Placement& placement) {
  for (uint32_t shard = 0; shard < placement.shards(); ++shard) {
    const auto& place = placement.proto().shards(static_cast<int>(shard));
    if (place.has_replica()) placement.SetSynced(shard, place.since_epoch());
  }
}

const v1::ShardPlace& At(const Placement& placement, int shard) {
  return placement.proto().shards(shard);
}

TEST_CASE("at first every server owns its shard and has its neighbour's replica") {
  const Placement placement(3, {.end = 3, .replicas = 2});
  for (int shard = 0; shard < 3; ++shard) {
    CHECK(At(placement, shard).owner() == static_cast<uint32_t>(shard));
    CHECK(At(placement, shard).replica() == static_cast<uint32_t>(shard + 1) % 3);
    CHECK_FALSE(At(placement, shard).synced());
  }
  const Placement single(3, {.end = 3, .replicas = 1});
  CHECK_FALSE(At(single, 1).has_replica());
  // With one server no shard has a replica.
  const Placement alone(3, {.end = 1, .replicas = 2});
  for (int shard = 0; shard < 3; ++shard) CHECK_FALSE(At(alone, shard).has_replica());
}

TEST_CASE("what a lost server owned goes to its replica, and what it had of others is gone") {
  Placement placement(3, {.end = 3, .replicas = 2});
  SyncAll(placement);
  CHECK(placement.whole());
  const uint64_t epoch = placement.epoch();
  REQUIRE(placement.Lose(1));
  CHECK(placement.epoch() == epoch + 1);
  CHECK(placement.owner(1) == 2);
  CHECK_FALSE(At(placement, 1).has_replica());
  CHECK_FALSE(At(placement, 0).has_replica());
  CHECK(At(placement, 2).synced());
  CHECK_FALSE(placement.whole());
}

TEST_CASE("a shard without a synced replica cannot be lost, and nothing changes") {
  Placement placement(3, {.end = 3, .replicas = 2});
  SyncAll(placement);
  REQUIRE(placement.Lose(1));
  const std::string before = placement.proto().SerializeAsString();
  CHECK_FALSE(placement.Lose(2));
  CHECK(placement.proto().SerializeAsString() == before);
  Placement single(3, {.end = 3, .replicas = 1});
  CHECK_FALSE(single.Lose(0));
}

TEST_CASE("who comes keeps what has no replica, but not its own") {
  Placement placement(2, {.end = 2, .replicas = 2});
  SyncAll(placement);
  REQUIRE(placement.Lose(0));
  REQUIRE(placement.Join(0));
  CHECK(placement.owner(0) == 1);
  CHECK(At(placement, 0).replica() == 0);
  CHECK(At(placement, 1).replica() == 0);
  CHECK_FALSE(placement.Join(0));
  CHECK_FALSE(placement.Lose(1));
}

// Server 0's shards are on server 2, and their synced replicas are at home.
Placement AwayFromHome(uint32_t shards) {
  Placement placement(shards, {.end = 3, .replicas = 2});
  SyncAll(placement);
  REQUIRE(placement.Lose(0));
  REQUIRE(placement.Join(2));
  SyncAll(placement);
  REQUIRE(placement.Lose(1));
  REQUIRE(placement.Join(0));
  SyncAll(placement);
  for (uint32_t shard = 0; shard < shards; shard += 3) {
    REQUIRE(placement.owner(shard) == 2);
    REQUIRE(At(placement, static_cast<int>(shard)).replica() == 0);
  }
  return placement;
}

TEST_CASE("a shard that comes home while its second one is away keeps a replica where it was") {
  Placement placement = AwayFromHome(3);
  CHECK(placement.Rebalance({0, 2}).owners.count(2) == 1);
  CHECK(placement.owner(0) == 0);
  CHECK(At(placement, 0).replica() == 2);
}

TEST_CASE("shards that come home have their replicas at the second one at once, if it is there") {
  Placement placement = AwayFromHome(6);
  placement.Rebalance({0, 1, 2});
  for (const int shard : {0, 3}) {
    CHECK(At(placement, shard).owner() == 0);
    CHECK(At(placement, shard).replica() == 1);
  }
}

TEST_CASE("only the replica that is meant can be said to be synced") {
  Placement placement(2, {.end = 2, .replicas = 2});
  const uint64_t first = At(placement, 0).since_epoch();
  SyncAll(placement);
  REQUIRE(placement.Lose(1));
  REQUIRE(placement.Join(1));
  CHECK_FALSE(placement.SetSynced(0, first));
  CHECK(placement.SetSynced(0, At(placement, 0).since_epoch()));
  CHECK_FALSE(placement.SetSynced(0, At(placement, 0).since_epoch()));
  CHECK_FALSE(placement.SetSynced(7, 1));
}

TEST_CASE("shards go back to who owned them at first, once that one has everything") {
  Placement placement(2, {.end = 2, .replicas = 2});
  SyncAll(placement);
  REQUIRE(placement.Lose(1));
  REQUIRE(placement.Join(1));
  CHECK_FALSE(placement.Rebalance({0, 1}).any);
  SyncAll(placement);
  const uint64_t epoch = placement.epoch();
  CHECK(placement.Rebalance({0, 1}).owners == std::set<uint32_t>{0});
  CHECK(placement.epoch() == epoch + 1);
  CHECK(placement.owner(1) == 1);
  CHECK(At(placement, 1).replica() == 0);
  CHECK_FALSE(At(placement, 1).synced());
  CHECK(At(placement, 0).synced());
  CHECK_FALSE(placement.Rebalance({0, 1}).any);
}

std::set<uint32_t> FirstServers(uint32_t count) {
  std::set<uint32_t> servers;
  for (uint32_t i = 0; i < count; ++i) servers.insert(i);
  return servers;
}

// Makes rounds until every shard is where it belongs. In each round an owner fills at most one of
// the shards that move, and no shard that is not synced changes its owner.
void MoveAll(Placement& placement, uint32_t here) {
  for (int round = 0; round < 100; ++round) {
    SyncAll(placement);
    const Placement before = placement;
    const Placement::Moves moves = placement.Rebalance(FirstServers(here));
    if (!moves.any) return;
    CHECK(placement.epoch() == before.epoch() + 1);
    std::multiset<uint32_t> filling;
    for (int shard = 0; shard < static_cast<int>(placement.shards()); ++shard) {
      const v1::ShardPlace &was = At(before, shard), &is = At(placement, shard);
      if (is.owner() != was.owner()) {
        CHECK(was.replica() == is.owner());
        CHECK(moves.owners.count(was.owner()) == 1);
      } else if (is.has_replica() && !is.synced() && was.has_replica()) {
        filling.insert(is.owner());
      }
    }
    for (const uint32_t owner : filling) CHECK(filling.count(owner) == 1);
  }
  FAIL("no end of it");
}

TEST_CASE("another number of servers: shards move there round by round, and nothing else does") {
  for (const uint32_t replicas : {1u, 2u}) {
    for (uint32_t from = replicas; from <= 7; ++from) {
      for (uint32_t to = replicas; to <= 7; ++to) {
        INFO(replicas << " holders, " << from << " to " << to);
        Placement placement(7, {.end = from, .replicas = replicas});
        placement.Want(to);
        MoveAll(placement, std::max(from, to));
        CHECK(placement.ToMove() == 0);
        for (int shard = 0; shard < 7; ++shard) {
          CHECK(At(placement, shard).owner() == static_cast<uint32_t>(shard) % to);
          const bool replicated = replicas > 1 && to > 1;
          CHECK(At(placement, shard).has_replica() == replicated);
          if (replicated) CHECK(At(placement, shard).replica() == (shard % to + 1) % to);
        }
        for (uint32_t server = to; server < 7; ++server) CHECK_FALSE(placement.Holds(server));
      }
    }
  }
}

TEST_CASE("nothing moves to a server that is not here, nor while anything is being filled") {
  Placement placement(4, {.end = 2, .replicas = 1});
  placement.Want(3);
  CHECK(placement.ToMove() == 2);
  REQUIRE(Placement(placement).Rebalance({0, 1}).any);
  CHECK_FALSE(Placement(placement).Rebalance({1}).any);
  REQUIRE(placement.Rebalance({0, 1, 2}).any);
  // Shard 2 of server 0 moves to server 2, and shard 3 of server 1 to server 0.
  CHECK(At(placement, 2).replica() == 2);
  CHECK(At(placement, 3).replica() == 0);
  placement.SetSynced(2, At(placement, 2).since_epoch());
  CHECK_FALSE(placement.Rebalance({0, 1, 2}).any);
  CHECK(placement.owner(2) == 0);
}

TEST_CASE("who dies while it is being filled is dropped, who has filled another survives in it") {
  Placement target(2, {.end = 1, .replicas = 1});
  target.Want(2);
  REQUIRE(target.Rebalance({0, 1}).any);
  REQUIRE(target.Lose(1));
  CHECK(target.owner(1) == 0);
  CHECK_FALSE(At(target, 1).has_replica());

  Placement source(2, {.end = 2, .replicas = 1});
  source.Want(1);
  REQUIRE(source.Rebalance({0, 1}).any);
  CHECK_FALSE(source.Lose(1));
  SyncAll(source);
  REQUIRE(source.Lose(1));
  CHECK(source.owner(1) == 0);
  CHECK(source.ToMove() == 0);
}

TEST_CASE("what is dealt out anew is dealt to those that are there") {
  Placement placement(5, {.end = 2, .replicas = 2});
  placement.Want(4);
  placement.Reset({0, 1, 3});
  CHECK(placement.owner(2) == 3);
  CHECK(At(placement, 2).replica() == 0);
  CHECK(placement.owner(3) == 0);
  MoveAll(placement, 4);
  CHECK(placement.ToMove() == 0);
}

TEST_CASE("a recorded placement goes on where it was") {
  Placement placement(2, {.end = 2, .replicas = 2});
  SyncAll(placement);
  Placement after({.end = 2, .replicas = 2}, placement.proto());
  CHECK(after.Lose(0));
  CHECK(after.epoch() == placement.epoch() + 1);
}

TEST_CASE("who is dropped as a replica leaves nothing of itself behind") {
  Placement placement(3, {.end = 3, .replicas = 2});
  SyncAll(placement);
  REQUIRE(placement.Lose(1));
  for (const int shard : {0, 1}) {
    CHECK_FALSE(At(placement, shard).has_replica());
    CHECK_FALSE(At(placement, shard).synced());
    CHECK(At(placement, shard).since_epoch() == 0);
  }
  CHECK(At(placement, 2).since_epoch() == 1);
}

TEST_CASE("since when a server owns a shard is known, once it has taken it over") {
  Placement placement(3, {.end = 3, .replicas = 2});
  SyncAll(placement);
  CHECK(placement.owner_since(1) == 0);
  REQUIRE(placement.Lose(1));
  CHECK(placement.owner_since(0) == 0);
  CHECK(placement.owner_since(1) == 2);
  CHECK(Placement({.end = 3, .replicas = 2}, placement.proto()).owner_since(1) == 0);
  placement.Reset({0, 2});
  CHECK(placement.epoch() == 3);
  CHECK(placement.owner_since(1) == 0);
  CHECK(At(placement, 1).since_epoch() == 3);
}

TEST_CASE("a server that comes gets every shard without a replica, in one epoch, or nothing") {
  Placement placement(4, {.end = 3, .replicas = 2});
  SyncAll(placement);
  CHECK_FALSE(placement.Join(2));
  REQUIRE(placement.Lose(1));
  const uint64_t epoch = placement.epoch();
  REQUIRE(placement.Join(1));
  CHECK(placement.epoch() == epoch + 1);
  for (const int shard : {0, 1, 3}) {
    CHECK(At(placement, shard).replica() == 1);
    CHECK(At(placement, shard).since_epoch() == epoch + 1);
  }
  Placement single(3, {.end = 3, .replicas = 1});
  CHECK_FALSE(single.Join(1));
  CHECK(single.epoch() == 1);
}

TEST_CASE("a shard is settled at its home, with its replica where that is to be, and synced") {
  Placement placement(2, {.end = 2, .replicas = 2});
  CHECK(placement.ToMove() == 2);
  CHECK_FALSE(placement.whole());
  CHECK(placement.SetSynced(0, 1));
  CHECK(placement.ToMove() == 1);
  CHECK_FALSE(placement.whole());
  CHECK(placement.SetSynced(1, 1));
  CHECK(placement.ToMove() == 0);
  CHECK(placement.whole());
  CHECK_FALSE(placement.SetSynced(2, 1));
  placement.Want(1);
  CHECK(placement.ToMove() == 2);
  Placement other(3, {.end = 3, .replicas = 2});
  SyncAll(other);
  // The owner is right, but the replica is not.
  other.Want(2);
  CHECK(other.ToMove() == 2);
}

TEST_CASE("of the servers a placement knows who holds something, as owner or as replica") {
  Placement placement(1, {.end = 3, .replicas = 2});
  CHECK(placement.Holds(0));
  CHECK(placement.Holds(1));
  CHECK_FALSE(placement.Holds(2));
  const Placement single(1, {.end = 3, .replicas = 1});
  CHECK_FALSE(single.Holds(1));
  SyncAll(placement);
  REQUIRE(placement.Lose(0));
  CHECK_FALSE(placement.Holds(0));
}

TEST_CASE("what is handed over keeps its old owner as a replica where the next one is not here") {
  for (const bool here : {true, false}) {
    Placement placement(3, {.end = 2, .replicas = 2});
    SyncAll(placement);
    placement.Want(4);
    REQUIRE(placement.Rebalance({0, 1, 2}).any);
    SyncAll(placement);
    // Shard 2 of server 0 moves to server 2; its replica is to be on server 3.
    const auto moves = placement.Rebalance(FirstServers(here ? 4 : 3));
    CHECK(moves.owners == std::set<uint32_t>{0});
    CHECK(placement.owner(2) == 2);
    CHECK(At(placement, 2).replica() == (here ? 3 : 0));
    CHECK_FALSE(At(placement, 2).synced());
    CHECK(placement.owner_since(2) == placement.epoch());
  }
}

TEST_CASE("a shard whose replica is too many gives it up, and the first one moves, too") {
  Placement placement(2, {.end = 2, .replicas = 1});
  placement.Want(1);
  SyncAll(placement);
  const auto first = placement.Rebalance({0, 1});
  CHECK(first.any);
  CHECK(first.owners.empty());
  CHECK(At(placement, 1).replica() == 0);
  SyncAll(placement);
  CHECK(placement.Rebalance({0, 1}).owners == std::set<uint32_t>{1});
  CHECK_FALSE(At(placement, 1).has_replica());
  // Asked for again, and not wanted any more before it is taken over.
  placement.Want(2);
  REQUIRE(placement.Rebalance({0, 1}).any);
  SyncAll(placement);
  placement.Want(1);
  CHECK(placement.Rebalance({0, 1}).any);
  CHECK_FALSE(At(placement, 1).has_replica());
  // The first shard is away from its home.
  v1::Placement recorded;
  recorded.set_epoch(4);
  for (const uint32_t owner : {1, 1}) recorded.add_shards()->set_owner(owner);
  Placement away({.end = 2}, recorded);
  CHECK(away.Rebalance({0, 1}).any);
  CHECK(At(away, 0).replica() == 0);
  CHECK(away.epoch() == 5);
}

TEST_CASE("where nothing moves there is no new epoch") {
  Placement placement(3, {.end = 3, .replicas = 2});
  SyncAll(placement);
  const std::string before = placement.proto().SerializeAsString();
  CHECK_FALSE(placement.Rebalance({0, 1, 2}).any);
  CHECK(placement.proto().SerializeAsString() == before);
}

TEST_CASE("where the workers hold the blocks, server 0 never holds one") {
  Placement placement(3, {.first = 1, .end = 4, .replicas = 2});
  for (int shard = 0; shard < 3; ++shard) {
    CHECK(At(placement, shard).owner() == static_cast<uint32_t>(shard + 1));
    CHECK(At(placement, shard).replica() == static_cast<uint32_t>((shard + 1) % 3 + 1));
  }
  SyncAll(placement);
  CHECK(placement.ToMove() == 0);
  CHECK_FALSE(placement.Holds(0));
  REQUIRE(placement.Lose(3));
  CHECK(placement.owner(2) == 1);
  // The coordinator is here, but gets no replica; the next life of server 3 gets its shards back.
  CHECK_FALSE(placement.Join(0));
  CHECK_FALSE(placement.Rebalance({0, 1, 2}).any);
  REQUIRE(placement.Join(3));
  MoveAll(placement, 4);
  CHECK(placement.owner(2) == 3);
  CHECK(placement.ToMove() == 0);
  CHECK_FALSE(placement.Holds(0));
  placement.Reset({0, 1, 3});
  CHECK(placement.owner(0) == 1);
  CHECK(placement.owner(1) == 3);
  CHECK(placement.owner(2) == 1);
}

}  // namespace
}  // namespace leeway::placement
