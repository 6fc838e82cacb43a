#include "server/coordinator/placement.h"

#include "tests/catch.h"

namespace leeway {
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
  const Placement placement(3, 2);
  for (int shard = 0; shard < 3; ++shard) {
    CHECK(At(placement, shard).owner() == static_cast<uint32_t>(shard));
    CHECK(At(placement, shard).replica() == static_cast<uint32_t>(shard + 1) % 3);
    CHECK_FALSE(At(placement, shard).synced());
  }
  const Placement single(3, 1);
  CHECK_FALSE(At(single, 1).has_replica());
}

TEST_CASE("what a lost server owned goes to its replica, and what it had of others is gone") {
  Placement placement(3, 2);
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
  Placement placement(3, 2);
  SyncAll(placement);
  REQUIRE(placement.Lose(1));
  const std::string before = placement.proto().SerializeAsString();
  CHECK_FALSE(placement.Lose(2));
  CHECK(placement.proto().SerializeAsString() == before);
  Placement single(3, 1);
  CHECK_FALSE(single.Lose(0));
}

TEST_CASE("who comes keeps what has no replica, but not its own") {
  Placement placement(2, 2);
  SyncAll(placement);
  REQUIRE(placement.Lose(0));
  REQUIRE(placement.Join(0));
  CHECK(placement.owner(0) == 1);
  CHECK(At(placement, 0).replica() == 0);
  CHECK(At(placement, 1).replica() == 0);
  CHECK_FALSE(placement.Join(0));
  CHECK_FALSE(placement.Lose(1));
}

TEST_CASE("only the replica that is meant can be said to be synced") {
  Placement placement(2, 2);
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
  Placement placement(2, 2);
  SyncAll(placement);
  REQUIRE(placement.Lose(1));
  REQUIRE(placement.Join(1));
  CHECK(placement.Rebalance().empty());
  SyncAll(placement);
  const uint64_t epoch = placement.epoch();
  CHECK(placement.Rebalance() == std::set<uint32_t>{0});
  CHECK(placement.epoch() == epoch + 1);
  CHECK(placement.owner(1) == 1);
  CHECK(At(placement, 1).replica() == 0);
  CHECK_FALSE(At(placement, 1).synced());
  CHECK(At(placement, 0).synced());
  CHECK(placement.Rebalance().empty());
}

TEST_CASE("a recorded placement goes on where it was") {
  Placement placement(2, 2);
  SyncAll(placement);
  Placement after(2, placement.proto());
  CHECK(after.Lose(0));
  CHECK(after.epoch() == placement.epoch() + 1);
}

}  // namespace
}  // namespace leeway
