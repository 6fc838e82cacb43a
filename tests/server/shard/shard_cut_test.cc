// What a shard holds for checkpoints.
#include "tests/catch.h"
#include "tests/server/shard/shard_rig.h"

namespace leeway::shard_cut {
namespace {

using testing::Reply;
using testing::SgdOptions;
using testing::World;

TEST_CASE("sync: blocks of which only some have had a clock are no cut") {
  World world(SgdOptions(v1::CONSISTENCY_MODE_SYNC, 1));
  CHECK(absl::IsUnavailable(world.shard->Hold(0).status()));
  world.Initialize(5);
  CHECK(world.shard->Hold(0)->size() == 3);
  Reply reply;
  world.PushPull(0, 0, 1.0f, reply);  // block 0 alone
  CHECK(absl::IsFailedPrecondition(world.shard->Hold(0).status()));
  CHECK(absl::IsFailedPrecondition(world.shard->Hold(1).status()));
}

TEST_CASE("without sync a cut holds the blocks as they stand") {
  World world(SgdOptions(v1::CONSISTENCY_MODE_ASYNC, 1));
  world.Initialize(5);
  Reply reply;
  world.PushPull(0, 0, 1.0f, reply);
  const auto held = world.shard->Hold(7);
  REQUIRE(held.ok());
  CHECK(held->at(0).progress.clocks[0] == 1);
  CHECK(held->at(1).progress.clocks[0] == 0);
}

TEST_CASE("a cut holds the values of its moment while training goes on") {
  Shard::Options options = SgdOptions(v1::CONSISTENCY_MODE_SYNC, 1);
  options.job.mutable_update()->mutable_sgd()->set_momentum(0.5);
  options.cut_every = 2;
  World world(options);
  world.Initialize(10);
  for (uint64_t clock = 0; clock < 5; ++clock) {
    Reply reply;
    world.PushPull(0, clock, 1.0f, reply);
  }
  REQUIRE(world.cuts.held.size() == 2);
  const auto& [cut, held] = world.cuts.held[0];
  CHECK(cut == 2);
  CHECK(held.progress.version == 2);
  CHECK(held.values.weights.span()[0] == 10 - 1 - 1.5f);
  CHECK(held.values.slots[0].span()[0] == 1.5f);
}

}  // namespace
}  // namespace leeway::shard_cut
