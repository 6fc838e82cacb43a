// What a shard answers while its replica has the version, lacks it, or is a new one.
#include <deque>
#include <memory>
#include <optional>

#include "server/shard/shard.h"
#include "tests/catch.h"
#include "tests/server/shard/no_cuts.h"
#include "tests/server/shard/waiting_sender.h"

namespace leeway::shard_replica {
namespace {

using Catch::Matchers::Contains;
using testing::FakeWaitingSender;
using testing::NoCuts;

// A replica that the test controls.
class Replica : public ReplicaSink {
 public:
  void Send(HeldBlock block, Done done) override {
    sent.push_back({std::move(block), std::move(done)});
  }
  // The oldest message arrives with this status. Returns the version in it.
  uint64_t Arrive(const absl::Status& status = absl::OkStatus()) {
    REQUIRE_FALSE(sent.empty());
    auto [block, done] = std::move(sent.front());
    sent.pop_front();
    done(status);
    return block.progress.version;
  }
  std::deque<std::pair<HeldBlock, Done>> sent;
};

struct Reply {
  std::optional<absl::StatusOr<BlockReading>> result;
  Shard::Done Done() {
    return [this](absl::StatusOr<BlockReading> reading) { result = std::move(reading); };
  }
  bool answered() const { return result.has_value(); }
};

Shard::Options MomentumOptions(v1::ConsistencyMode mode, uint32_t workers) {
  Shard::Options options;
  options.job.mutable_exchange()->mutable_gradient();
  options.job.mutable_consistency()->set_mode(mode);
  options.job.mutable_update()->mutable_sgd()->set_momentum(0.5);
  options.job.mutable_update()->set_learning_rate(1);
  options.job.mutable_data()->set_batch_size(10);
  options.job.mutable_workers()->set_count(workers);
  options.job.mutable_servers()->set_count(1);
  options.schema.set_total(8);
  options.schema.set_trained(8);
  options.length.set_steps_per_clock(1);
  options.length.set_clocks(10);
  options.length.set_steps_per_epoch(10);
  options.block_elements = 8;
  return options;
}

class World {
 public:
  explicit World(v1::ConsistencyMode mode, uint32_t workers) {
    shard = std::shared_ptr<Shard>(*Shard::Make(MomentumOptions(mode, workers), &cuts));
    Reply reply;
    shard->Initialize(Header(0, 0), Values(5), reply.Done());
    REQUIRE(reply.result->ok());
  }
  // Ends as the owner of a shard does: messages under way hold the shard.
  ~World() {
    shard->SetReplica(nullptr);
    replica->sent.clear();
  }
  v1::ExchangeHeader Header(uint32_t rank, uint64_t clock) {
    v1::ExchangeHeader header;
    header.set_rank(rank);
    header.set_incarnation(1);
    header.set_clock(clock);
    header.set_examples(10);
    return header;
  }
  FloatPayload Values(float value) {
    auto values = std::make_shared<std::vector<float>>(8, value);
    return FloatPayload::Of(*values, values);
  }
  void Push(uint32_t rank, uint64_t clock, Reply& reply) {
    shard->Contribute(Header(rank, clock), Values(1), false, Time{}, reply.Done());
  }
  void PushPull(uint32_t rank, uint64_t clock, Reply& reply, Patience patience = {}) {
    shard->Contribute(Header(rank, clock), Values(1), true, Time{}, reply.Done(),
                      std::move(patience));
  }
  void Attach() {
    shard->SetReplica(replica);
    REQUIRE(replica->Arrive() == 0);
    REQUIRE(shard->replica_synced());
  }

  NoCuts cuts;
  std::shared_ptr<Shard> shard;
  std::shared_ptr<Replica> replica = std::make_shared<Replica>();
};

TEST_CASE("an answer waits until the replica has the version that it says") {
  World world(v1::CONSISTENCY_MODE_SYNC, 2);
  world.Attach();
  Reply a, b;
  world.PushPull(0, 0, a);
  world.PushPull(1, 0, b);
  CHECK_FALSE(a.answered());
  CHECK_FALSE(b.answered());
  REQUIRE(world.replica->sent.size() == 1);
  const HeldBlock& held = world.replica->sent.front().first;
  CHECK(held.values.weights.span()[0] == 4);
  REQUIRE(held.values.slots.size() == 1);
  CHECK(held.values.slots[0].span()[0] == 1);
  CHECK(held.progress.clocks == std::vector<uint64_t>{1, 1});
  CHECK(world.replica->Arrive() == 1);
  REQUIRE(a.answered());
  CHECK((*a.result)->header.version() == 1);
  CHECK(b.answered());
}

TEST_CASE("a push is acknowledged when the replica has it, in every mode") {
  for (auto mode :
       {v1::CONSISTENCY_MODE_SYNC, v1::CONSISTENCY_MODE_BOUNDED, v1::CONSISTENCY_MODE_ASYNC}) {
    Reply pushes[2], again;
    World world(mode, 2);
    world.Attach();
    for (uint32_t rank : {0, 1}) world.Push(rank, 0, pushes[rank]);
    world.Push(0, 0, again);
    // What its replica would take over with: every answered contribution is there.
    std::vector<uint64_t> has = {0, 0};
    while (!world.replica->sent.empty()) {
      for (uint32_t rank : {0, 1}) CHECK((has[rank] > 0 || !pushes[rank].answered()));
      CHECK((has[0] > 0 || !again.answered()));
      has = world.replica->sent.front().first.progress.clocks;
      world.replica->Arrive();
    }
    for (const Reply& push : pushes) {
      REQUIRE(push.answered());
      CHECK(push.result->ok());
      CHECK_FALSE((*push.result)->has_payload());
    }
    REQUIRE(again.answered());
    CHECK((*again.result)->duplicate);
  }
}

TEST_CASE("a push that its owner has not applied when it goes is sent again, and counts once") {
  for (auto mode :
       {v1::CONSISTENCY_MODE_SYNC, v1::CONSISTENCY_MODE_BOUNDED, v1::CONSISTENCY_MODE_ASYNC}) {
    Reply pushes[2], again[2];
    World world(mode, 2);
    world.Attach();
    for (uint32_t rank : {0, 1}) world.Push(rank, 0, pushes[rank]);
    // The first version that the replica has may have one contribution or both; in sync mode it has
    // both.
    HeldBlock taken = std::move(world.replica->sent.front().first);
    world.replica->sent.clear();
    world.shard->Close();
    for (const Reply& push : pushes) CHECK(absl::IsUnavailable(push.result->status()));
    NoCuts cuts;
    const std::shared_ptr<Shard> shard(*Shard::Make(MomentumOptions(mode, 2), &cuts));
    shard->Load(0, std::move(taken.values), taken.progress, std::move(taken.previous));
    for (uint32_t rank : {0, 1}) {
      shard->Contribute(world.Header(rank, 0), world.Values(1), false, Time{}, again[rank].Done());
    }
    for (uint32_t rank : {0, 1}) {
      REQUIRE(again[rank].answered());
      REQUIRE(again[rank].result->ok());
      CHECK((*again[rank].result)->duplicate == (taken.progress.clocks[rank] > 0));
    }
    CHECK(shard->Hold(1).value()[0].progress.clocks == std::vector<uint64_t>{1, 1});
  }
}

TEST_CASE("what is applied while a version is under way goes with the next, and waits for it") {
  World world(v1::CONSISTENCY_MODE_ASYNC, 3);
  world.Attach();
  Reply a, b, c;
  world.PushPull(0, 0, a);
  world.PushPull(1, 0, b);
  world.PushPull(2, 0, c);
  REQUIRE(world.replica->sent.size() == 1);
  CHECK(world.replica->Arrive() == 1);
  CHECK(a.answered());
  CHECK_FALSE(b.answered());
  REQUIRE(world.replica->sent.size() == 1);
  CHECK(world.replica->Arrive() == 3);
  CHECK(b.answered());
  CHECK(c.answered());
}

TEST_CASE("who attaches is told of what was answered before there was a replica, and of no more") {
  // These outlive the shard, which answers in its destructor.
  Reply before, after;
  World world(v1::CONSISTENCY_MODE_ASYNC, 1);
  world.shard->SetReplica(world.replica);
  // The replica's first state is still under way.
  world.PushPull(0, 0, before);
  REQUIRE(before.answered());
  REQUIRE(world.replica->Arrive() == 0);
  REQUIRE_FALSE(world.shard->replica_synced());
  CHECK(world.shard->Attach(0, 2)->clock() == 1);
  v1::ExchangeHeader header = world.Header(0, 1);
  header.set_incarnation(2);
  world.shard->Contribute(header, world.Values(1), true, Time{}, after.Done());
  CHECK_FALSE(after.answered());
  CHECK(world.shard->Attach(0, 3)->clock() == 1);
}

TEST_CASE("a repeated contribution is not acknowledged before the replica has it either") {
  World world(v1::CONSISTENCY_MODE_ASYNC, 1);
  world.Attach();
  Reply first, again;
  world.PushPull(0, 0, first);
  world.PushPull(0, 0, again);
  CHECK_FALSE(again.answered());
  world.replica->Arrive();
  REQUIRE(again.answered());
  CHECK((*again.result)->duplicate);
}

TEST_CASE("a refusal need not wait") {
  World world(v1::CONSISTENCY_MODE_ASYNC, 1);
  world.Attach();
  Reply first, wrong;
  world.PushPull(0, 0, first);
  world.PushPull(0, 5, wrong);
  REQUIRE(wrong.answered());
  CHECK(absl::IsFailedPrecondition(wrong.result->status()));
  CHECK_FALSE(first.answered());
  world.replica->Arrive();
  CHECK(first.answered());
}

TEST_CASE("who waits on for a replica is told so, and answered once it has it") {
  World world(v1::CONSISTENCY_MODE_ASYNC, 1);
  world.Attach();
  Reply reply;
  const auto sender = std::make_shared<FakeWaitingSender>();
  world.PushPull(0, 0, reply, {sender, 3});
  for (int seconds : {10, 12, 13, 14}) world.shard->Tick(Time(std::chrono::seconds(seconds)));
  CHECK_FALSE(reply.answered());
  CHECK(sender->told == FakeWaitingSender::Told(
                            2, {3, "block 0: the server waits until the replica has version 1"}));
  SECTION("that it stays") {
    world.replica->Arrive();
    REQUIRE(reply.answered());
    CHECK(reply.result->ok());
  }
  SECTION("unless it goes") {
    sender->has_gone = true;
    world.shard->Tick(Time(std::chrono::seconds(16)));
    REQUIRE(reply.answered());
    CHECK(absl::IsUnavailable(reply.result->status()));
  }
}

TEST_CASE("what does not arrive is sent again, and who has waited long is told for what") {
  World world(v1::CONSISTENCY_MODE_ASYNC, 1);
  world.Attach();
  Reply reply;
  world.PushPull(0, 0, reply);
  world.replica->Arrive(absl::UnavailableError("the way has broken"));
  CHECK_FALSE(reply.answered());
  world.shard->Tick(Time(std::chrono::seconds(10)));
  REQUIRE(world.replica->sent.size() == 1);
  CHECK_FALSE(reply.answered());
  world.shard->Tick(Time(std::chrono::seconds(12)));
  REQUIRE(reply.answered());
  CHECK(absl::IsUnavailable(reply.result->status()));
  CHECK_THAT(std::string(reply.result->status().message()), Contains("waits until the replica"));
  // The repeated request is answered once the version has arrived.
  Reply again;
  world.PushPull(0, 0, again);
  CHECK_FALSE(again.answered());
  world.replica->Arrive();
  CHECK(again.answered());
}

TEST_CASE("without a replica everything leaves, late words of one that was do nothing") {
  World world(v1::CONSISTENCY_MODE_ASYNC, 1);
  world.Attach();
  Reply first, second;
  world.PushPull(0, 0, first);
  world.shard->SetReplica(nullptr);
  CHECK(first.answered());
  world.PushPull(0, 1, second);
  CHECK(second.answered());
  const auto other = std::make_shared<Replica>();
  world.shard->SetReplica(other);
  world.replica->Arrive();
  CHECK_FALSE(world.shard->replica_synced());
  CHECK(other->Arrive() == 2);
  CHECK(world.shard->replica_synced());
}

TEST_CASE("who attaches is told no more than the replica has") {
  World world(v1::CONSISTENCY_MODE_ASYNC, 2);
  world.Attach();
  Reply first, second, other;
  world.PushPull(0, 0, first);
  world.PushPull(0, 1, second);
  world.PushPull(1, 0, other);
  CHECK(world.shard->Attach(0, 1)->clock() == 0);
  CHECK(world.replica->Arrive() == 1);
  CHECK(world.shard->Attach(0, 1)->clock() == 1);
  CHECK(world.shard->Attach(1, 1)->clock() == 0);
  CHECK(world.replica->Arrive() == 3);
  CHECK(world.shard->Attach(0, 1)->clock() == 2);
  CHECK(world.shard->Attach(1, 1)->clock() == 1);
  // A new replica holds nothing up, and does not count yet.
  world.PushPull(0, 2, first);
  world.shard->SetReplica(std::make_shared<Replica>());
  CHECK(world.shard->Attach(0, 1)->clock() == 3);
}

TEST_CASE("sync: who attaches asks again until the replica has what it would be told") {
  World world(v1::CONSISTENCY_MODE_SYNC, 1);
  world.Attach();
  Reply reply;
  world.PushPull(0, 0, reply);
  CHECK(absl::IsUnavailable(world.shard->Attach(0, 2).status()));
  world.replica->Arrive();
  CHECK(world.shard->Attach(0, 2)->clock() == 1);
}

TEST_CASE("whoever waits for the replica is answered when the shard closes") {
  World world(v1::CONSISTENCY_MODE_ASYNC, 1);
  world.Attach();
  Reply reply;
  world.PushPull(0, 0, reply);
  world.shard->Close();
  REQUIRE(reply.answered());
  CHECK(absl::IsUnavailable(reply.result->status()));
}

TEST_CASE("a shard goes on from what a replica holds, the version before included") {
  NoCuts cuts;
  const std::shared_ptr<Shard> shard(
      *Shard::Make(MomentumOptions(v1::CONSISTENCY_MODE_SYNC, 1), &cuts));
  const auto filled = [](SharedFloats values, float value) {
    std::fill_n(values.mutable_data(), 8, value);
    return values;
  };
  BlockValues values;
  values.weights = filled(shard->store().Allocate(0), 3);
  values.slots.push_back(filled(shard->store().AllocateSlot(0), 0));
  shard->Load(0, std::move(values), {7, {7}}, filled(shard->store().Allocate(0), 4));
  v1::ExchangeHeader header;
  header.set_incarnation(1);
  const auto read = [&](uint64_t clock) {
    Reply reply;
    header.set_clock(clock);
    shard->Read(header, ReadKind::kAtClock, Time{}, reply.Done());
    REQUIRE(reply.answered());
    REQUIRE(reply.result->ok());
    return (*reply.result)->values.span()[0];
  };
  CHECK(read(7) == 3);
  CHECK(read(6) == 4);
}

TEST_CASE("a replica whose first state was long under way gets the version before the next one") {
  World world(v1::CONSISTENCY_MODE_SYNC, 1);
  world.shard->SetReplica(world.replica);
  // Nothing is held up while the replica has no version.
  for (uint64_t clock = 0; clock < 3; ++clock) {
    Reply reply;
    world.PushPull(0, clock, reply);
    CHECK(reply.answered());
  }
  REQUIRE(world.replica->Arrive() == 0);
  REQUIRE(world.replica->sent.size() == 1);
  const HeldBlock& next = world.replica->sent.front().first;
  CHECK(next.progress.version == 3);
  REQUIRE(next.previous);
  CHECK(next.previous.span()[0] != next.values.weights.span()[0]);
  CHECK(world.replica->Arrive() == 3);
  Reply reply;
  world.PushPull(0, 3, reply);
  REQUIRE(world.replica->sent.size() == 1);
  CHECK_FALSE(world.replica->sent.front().first.previous);
  world.replica->Arrive();
  CHECK(reply.answered());
}

TEST_CASE("a shard that is given up answers nobody, not even what its replica does not have") {
  World world(v1::CONSISTENCY_MODE_ASYNC, 2);
  world.Attach();
  Reply gated, push, pull;
  world.PushPull(0, 0, gated);
  CHECK_FALSE(gated.answered());
  world.shard->Close();
  REQUIRE(gated.answered());
  CHECK(absl::IsUnavailable(gated.result->status()));
  world.PushPull(1, 0, push);
  REQUIRE(push.answered());
  CHECK(absl::IsUnavailable(push.result->status()));
  CHECK_THAT(std::string(push.result->status().message()), Contains("block 0"));
  world.shard->Read(world.Header(1, 0), ReadKind::kLatest, Time{}, pull.Done());
  REQUIRE(pull.answered());
  CHECK(absl::IsUnavailable(pull.result->status()));
  CHECK(absl::IsUnavailable(world.shard->Attach(1, 2).status()));
  CHECK(world.shard->Hold(1).value()[0].progress.version == 1);
}

}  // namespace
}  // namespace leeway::shard_replica
