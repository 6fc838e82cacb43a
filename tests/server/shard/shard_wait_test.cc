// Requests that wait at a shard are told for which workers, and are answered or refused in time.
#include <chrono>
#include <memory>

#include "server/shard/shard.h"
#include "tests/catch.h"
#include "tests/server/shard/shard_rig.h"
#include "tests/server/shard/waiting_sender.h"

namespace leeway::shard_wait {
namespace {

using testing::FakeWaitingSender;
using testing::Reply;
using testing::SgdOptions;
using testing::World;

TEST_CASE("who waits too long is told for whom") {
  World world(SgdOptions(v1::CONSISTENCY_MODE_SYNC, 2));
  world.Initialize(5);
  Reply reply, again;
  world.now += std::chrono::seconds(10);
  world.PushPull(0, 0, 1.0f, reply);
  world.shard->Tick(world.now - std::chrono::seconds(1));
  CHECK_FALSE(reply.answered());
  world.shard->Tick(world.now);
  REQUIRE(reply.answered());
  CHECK(reply.status().message() == "block 0, clock 1: waiting for worker 1 (at clock 0)");
  world.PushPull(0, 0, 1.0f, again);
  Reply other;
  world.PushPull(1, 0, 3.0f, other);
  CHECK(again.first() == 3);
}

TEST_CASE("a server that ends leaves nobody waiting, also who comes late") {
  World world(SgdOptions(v1::CONSISTENCY_MODE_SYNC, 2));
  world.Initialize(5);
  Reply before, after;
  world.PushPull(0, 0, 1.0f, before);
  CHECK_FALSE(before.answered());
  world.shard->Close();
  CHECK(absl::IsUnavailable(before.status()));
  world.PushPull(0, 0, 1.0f, after);
  REQUIRE(after.answered());
  CHECK(absl::IsUnavailable(after.status()));
}

TEST_CASE("bounded: an elastic worker that waits on is answered the centre that it found") {
  Shard::Options options = SgdOptions(v1::CONSISTENCY_MODE_BOUNDED, 2);
  options.job.mutable_consistency()->set_staleness(0);
  options.job.clear_update();
  options.job.mutable_exchange()->mutable_elastic()->set_alpha(0.5);
  World world(options);
  world.Initialize(4);
  const auto sender = std::make_shared<FakeWaitingSender>();
  Reply ahead, behind;
  world.shard->Contribute(world.Header(0, 0, 0), world.Values(0, 8), true, world.now, ahead.Done(),
                          {sender, 17});
  const Time later = world.now + Shard::kWaitAtMost;
  world.shard->Tick(later);
  CHECK_FALSE(ahead.answered());
  CHECK(sender->told ==
        FakeWaitingSender::Told{{17, "block 0, clock 1: waiting for worker 1 (at clock 0)"}});
  SECTION("whoever comes meanwhile") {
    world.PushPull(1, 0, 16, behind);
    CHECK(ahead.first() == 4);
    CHECK(behind.first() == 6);
  }
  SECTION("or is refused once it has gone") {
    sender->has_gone = true;
    world.shard->Tick(later + 2 * Shard::kWaitAtMost);
    REQUIRE(ahead.answered());
    CHECK(absl::IsUnavailable(ahead.status()));
  }
  SECTION("or once the shard is closed") {
    world.shard->Close();
    REQUIRE(ahead.answered());
    CHECK(absl::IsUnavailable(ahead.status()));
  }
}

}  // namespace
}  // namespace leeway::shard_wait
