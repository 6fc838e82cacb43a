#include "server/shard/shard.h"

#include <atomic>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "tests/catch.h"
#include "tests/server/shard/shard_rig.h"

namespace leeway::shard {
namespace {

using testing::Reply;
using testing::SgdOptions;
using testing::World;

TEST_CASE("sync applies the mean over examples, and answers everybody with the next version") {
  World world(SgdOptions(v1::CONSISTENCY_MODE_SYNC, 2));
  world.Initialize(5);
  Reply a, b;
  world.PushPull(1, 0, 1.0f, a, 30);
  CHECK_FALSE(a.answered());
  world.PushPull(0, 0, 2.0f, b, 10);
  REQUIRE(a.answered());
  REQUIRE(b.answered());
  CHECK(a.first() == 5 - 1.25f);
  CHECK(b.first() == 5 - 1.25f);
  CHECK((*b.result)->header.version() == 1);
}

class HeldContributions : public ContributionListener {
 public:
  void OnLoaded(uint64_t version) override {}
  void OnAccepted(uint32_t rank, uint64_t clock) override { accepted.emplace_back(rank, clock); }
  void OnRefused(uint32_t rank, uint64_t clock) override { refused.emplace_back(rank, clock); }
  void OnLive(uint32_t rank, bool live) override {}
  void OnCommitted(uint64_t clock) override { committed.push_back(clock); }
  std::vector<std::pair<uint32_t, uint64_t>> accepted, refused;
  std::vector<uint64_t> committed;
};

TEST_CASE("sync with committed sets applies the mean of the set, and nothing of the others") {
  Shard::Options options = SgdOptions(v1::CONSISTENCY_MODE_SYNC, 3);
  const auto held = std::make_shared<HeldContributions>();
  options.contributions = held;
  World world(options);
  world.Initialize(5);
  Reply replies[3], late;
  world.PushPull(2, 0, 1.0f, replies[2], 30);
  world.PushPull(1, 0, 100.0f, replies[1], 10);
  world.PushPull(0, 0, 2.0f, replies[0], 10);
  CHECK(held->accepted.size() == 3);
  CHECK_FALSE(replies[0].answered());
  CHECK(world.shard->CommitSet(0, {0, 2}).ok());
  CHECK(held->committed == std::vector<uint64_t>{0});
  CHECK(replies[0].first() == 5 - 1.25f);
  CHECK(replies[2].first() == 5 - 1.25f);
  CHECK(absl::IsAlreadyExists(replies[1].status()));
  world.PushPull(1, 0, 100.0f, late, 10);
  CHECK(absl::IsAlreadyExists(late.status()));
  // Blocks 1 and 2 have no contributions yet: there the rank is still at clock 0.
  CHECK(world.shard->Attach(2, 1)->counted() == 1);
  CHECK(world.shard->Attach(1, 1)->counted() == 0);
  // Ranks that cannot be a set.
  for (const std::vector<uint32_t>& ranks :
       std::vector<std::vector<uint32_t>>{{}, {1, 0}, {1, 1}, {3}}) {
    CHECK(absl::IsInvalidArgument(world.shard->CommitSet(1, ranks)));
  }
}

TEST_CASE("the updates of a committed set may be done in any order, side by side") {
  Shard::Options options = SgdOptions(v1::CONSISTENCY_MODE_SYNC, 2);
  options.contributions = std::make_shared<HeldContributions>();
  World world(options);
  world.Initialize(5);
  Reply replies[2];
  world.PushPull(0, 0, 1.0f, replies[0]);
  world.PushPull(1, 0, 2.0f, replies[1]);
  uint64_t shared = 0;
  const auto backwards = [&](uint64_t parts, const std::function<void(uint64_t)>& run) {
    shared = parts;
    std::vector<std::jthread> threads;
    for (uint64_t part = parts; part-- > 0;) threads.emplace_back(run, part);
  };
  CHECK(world.shard->CommitSet(0, {0, 1}, backwards).ok());
  CHECK(shared == world.shard->store().layout().BlocksOn(0));
  CHECK(replies[0].first() == 5 - 1.5f);
  CHECK(replies[1].first() == 5 - 1.5f);
}

TEST_CASE("what a committed set counts on and cannot be applied is told by rank and clock") {
  Shard::Options options = SgdOptions(v1::CONSISTENCY_MODE_SYNC, 2);
  const auto held = std::make_shared<HeldContributions>();
  options.contributions = held;
  World world(options);
  world.Initialize(5);
  Reply good, bad;
  world.PushPull(0, 0, 1.0f, good);
  world.PushPull(1, 0, std::numeric_limits<float>::quiet_NaN(), bad);
  CHECK(held->refused.empty());
  REQUIRE(world.shard->CommitSet(0, {0, 1}).ok());
  CHECK(absl::IsInvalidArgument(bad.status()));
  CHECK_FALSE(good.answered());
  CHECK(held->refused == std::vector<std::pair<uint32_t, uint64_t>>{{1, 0}});
}

TEST_CASE(
    "async applies each contribution on arrival, weighed by its examples against a full batch") {
  World world(SgdOptions(v1::CONSISTENCY_MODE_ASYNC, 2, 2));
  world.Initialize(5);
  Reply full, half, repeated;
  world.PushPull(0, 0, 1.0f, full);
  CHECK(full.first() == 4);
  world.PushPull(1, 0, 1.0f, half, 5);
  CHECK(half.first() == 3.5f);
  world.PushPull(1, 0, 1.0f, repeated, 5);
  CHECK(repeated.first() == 3.5f);
  CHECK((*repeated.result)->duplicate);
}

// Returns the weight after `clocks` clocks of 4 workers whose gradients are all 1.
float WeightAfter(uint64_t clocks, v1::ConsistencyMode mode, const v1::Update& update) {
  Shard::Options options = SgdOptions(mode, 4);
  options.job.mutable_consistency()->set_staleness(3);
  *options.job.mutable_update() = update;
  World world(options);
  world.Initialize(5);
  for (uint64_t clock = 0; clock < clocks; ++clock) {
    std::vector<Reply> replies(4);
    for (uint32_t rank = 0; rank < 4; ++rank) world.PushPull(rank, clock, 1, replies[rank]);
    if (clock + 1 == clocks) return replies.back().first();
  }
  return 5;
}

TEST_CASE("a clock moves the weights as far in every mode") {
  v1::Update update;
  update.set_learning_rate(0.01);
  SECTION("sgd, with weight decay") { update.mutable_sgd()->set_weight_decay(0.1); }
  // Measured once the velocity has risen, which takes 10 contributions or 10 clocks.
  SECTION("momentum") { update.mutable_sgd()->set_momentum(0.5); }
  SECTION("adam") { update.mutable_adam(); }
  SECTION("adamw") { update.mutable_adamw()->set_weight_decay(0.1); }
  SECTION("lion") { update.mutable_lion(); }
  SECTION("the rate of one worker times the number of workers") {
    update.mutable_sgd();
    update.set_scaling(v1::RATE_SCALING_LINEAR);
  }
  const float moved = 5 - WeightAfter(100, v1::CONSISTENCY_MODE_SYNC, update);
  CHECK(moved > 0.5f);
  for (const auto mode : {v1::CONSISTENCY_MODE_BOUNDED, v1::CONSISTENCY_MODE_ASYNC}) {
    CHECK(5 - WeightAfter(100, mode, update) == Approx(moved).epsilon(0.02));
  }
}

TEST_CASE("outside of sync a contribution's share is that of the workers that are there") {
  for (const auto mode : {v1::CONSISTENCY_MODE_BOUNDED, v1::CONSISTENCY_MODE_ASYNC}) {
    for (const auto scaling : {v1::RATE_SCALING_NONE, v1::RATE_SCALING_LINEAR}) {
      Shard::Options options = SgdOptions(mode, 4);
      options.job.mutable_consistency()->set_staleness(9);
      options.job.mutable_update()->set_scaling(scaling);
      World world(options);
      world.Initialize(5);
      float before = 5;
      uint64_t clock = 0;
      const auto moves = [&] {
        Reply reply;
        world.PushPull(0, clock++, 1, reply);
        return std::exchange(before, reply.first()) - reply.first();
      };
      const bool full = scaling == v1::RATE_SCALING_LINEAR;
      CHECK(moves() == (full ? 1 : 0.25f));
      world.shard->SetLive(2, false);
      world.shard->SetLive(2, false);
      world.shard->SetLive(3, false);
      CHECK(moves() == (full ? 1 : 0.5f));
      world.shard->SetLive(3, true);
      CHECK(moves() == Approx(full ? 1 : 1 / 3.0));
      for (const uint32_t rank : {0, 1, 3}) world.shard->SetLive(rank, false);
      CHECK(moves() == 1);
    }
  }
}

TEST_CASE("a version stays as it was while somebody reads it") {
  for (auto mode : {v1::CONSISTENCY_MODE_SYNC, v1::CONSISTENCY_MODE_ASYNC}) {
    World world(SgdOptions(mode, 1));
    world.Initialize(5);
    std::vector<SharedFloats> held;
    for (uint64_t clock = 0; clock < 4; ++clock) {
      Reply reply;
      world.PushPull(0, clock, 1.0f, reply);
      held.push_back((*reply.result)->values);
    }
    for (size_t i = 0; i < held.size(); ++i) CHECK(held[i].span()[0] == 4.0f - i);
  }
}

TEST_CASE("a reader that has the version already is told so, without values") {
  for (auto mode : {v1::CONSISTENCY_MODE_SYNC, v1::CONSISTENCY_MODE_ASYNC}) {
    World world(SgdOptions(mode, 1));
    world.Initialize(5);
    const auto read = [&](uint64_t clock, std::optional<uint64_t> have, ReadKind kind) {
      v1::ExchangeHeader header = world.Header(0, clock, 0);
      if (have.has_value()) header.set_have_version(*have);
      Reply reply;
      world.shard->Read(header, kind, world.now, reply.Done());
      return **reply.result;
    };
    for (const ReadKind kind : {ReadKind::kAtClock, ReadKind::kLatest}) {
      CHECK(read(0, 0, kind).header.unchanged());
      CHECK_FALSE(read(0, 0, kind).has_payload());
      CHECK_FALSE(read(0, std::nullopt, kind).header.unchanged());
    }
    Reply pushed;
    world.PushPull(0, 0, 1.0f, pushed);
    for (const ReadKind kind : {ReadKind::kAtClock, ReadKind::kLatest}) {
      const BlockReading old = read(1, 0, kind);
      CHECK_FALSE(old.header.unchanged());
      CHECK(old.values.span()[0] == 4);
      const BlockReading same = read(1, 1, kind);
      CHECK(same.header.unchanged());
      CHECK(same.header.version() == 1);
      CHECK_FALSE(same.has_payload());
    }
  }
}

TEST_CASE("the moving average of the weights is read beside them") {
  Shard::Options options = SgdOptions(v1::CONSISTENCY_MODE_SYNC, 1);
  options.job.mutable_update()->mutable_average()->set_decay(0.5);
  World world(options);
  const auto read = [&](ReadKind kind) {
    v1::ExchangeHeader header = world.Header(0, 0, 0);
    // The weights' version says nothing about the average.
    header.set_have_version(2);
    Reply reply;
    world.shard->Read(header, kind, world.now, reply.Done());
    REQUIRE(reply.answered());
    return reply.first();
  };
  world.Initialize(5);
  CHECK(read(ReadKind::kAverage) == 5);
  const float averages[] = {4, 3.5f, 2.75f};
  for (uint64_t clock = 0; clock < 3; ++clock) {
    Reply pushed;
    world.PushPull(0, clock, 1.0f, pushed);
    CHECK(pushed.first() == 4.0f - static_cast<float>(clock));
    CHECK(read(ReadKind::kAverage) == averages[clock]);
  }
}

TEST_CASE("who reads an average that the job does not keep is told so") {
  World world(SgdOptions(v1::CONSISTENCY_MODE_SYNC, 1));
  world.Initialize(5);
  Reply reply;
  world.shard->Read(world.Header(0, 0, 0), ReadKind::kAverage, world.now, reply.Done());
  CHECK(reply.status().code() == absl::StatusCode::kFailedPrecondition);
  CHECK_THAT(std::string(reply.status().message()), Catch::Contains("update.average"));
}

TEST_CASE("clocks without any example change nothing, momentum included") {
  Shard::Options options = SgdOptions(v1::CONSISTENCY_MODE_SYNC, 1);
  options.job.mutable_update()->mutable_sgd()->set_momentum(0.5);
  World world(options);
  world.Initialize(5);
  Reply one, empty, two;
  world.PushPull(0, 0, 1.0f, one);
  world.PushPull(0, 1, 7.0f, empty, 0);
  CHECK(empty.first() == 4);
  world.PushPull(0, 2, 0.0f, two);
  CHECK(two.first() == 3.5f);
}

TEST_CASE("the elastic exchange answers the centre as it was, in each mode") {
  for (auto mode : {v1::CONSISTENCY_MODE_SYNC, v1::CONSISTENCY_MODE_ASYNC}) {
    Shard::Options options = SgdOptions(mode, 1);
    options.job.clear_update();
    options.job.mutable_exchange()->mutable_elastic()->set_alpha(0.5);
    World world(options);
    world.Initialize(4);
    Reply first, second;
    world.PushPull(0, 0, 8.0f, first);
    CHECK(first.first() == 4);
    world.PushPull(0, 1, 6.0f, second);
    CHECK(second.first() == 6);
  }
}

TEST_CASE(
    "async: the schedule goes by the mean clock, so that a fast worker does not run through it "
    "alone") {
  Shard::Options options = SgdOptions(v1::CONSISTENCY_MODE_ASYNC, 2, 2);
  v1::StepSchedule* step = options.job.mutable_update()->mutable_schedule()->mutable_step();
  step->mutable_every()->set_clocks(2);
  step->set_factor(0.5);
  options.length.set_total_clocks(20);
  World world(options);
  world.Initialize(0);
  // Four updates of one worker are two clocks on average.
  const std::vector<float> expected = {-1, -2, -3, -4, -4.5f};
  for (uint64_t clock = 0; clock < expected.size(); ++clock) {
    Reply reply;
    world.PushPull(0, clock, 1.0f, reply);
    CHECK(reply.first() == expected[clock]);
  }
}

// Returns the weights of a block of many floats after two updates. The first update's values were
// read by nobody or by their own sender.
std::vector<float> LargeBlockAfterUpdates(bool wants_values) {
  constexpr uint64_t kFloats = (4 << 20) + 3;
  Shard::Options options = SgdOptions(v1::CONSISTENCY_MODE_ASYNC, 1, 0.5);
  options.job.mutable_update()->mutable_sgd()->set_momentum(0.5);
  options.schema.set_total(kFloats);
  options.schema.set_trained(kFloats - 100);
  options.block_elements = kFloats;
  World world(options);
  std::vector<float> values(kFloats);
  std::iota(values.begin(), values.end(), -1000.0f);
  Reply initialized, read;
  world.shard->Initialize(world.Header(0, 0, 0), FloatPayload::Of(values), initialized.Done());
  for (uint64_t clock = 0; clock < 2; ++clock) {
    Reply reply;
    world.shard->Contribute(world.Header(0, clock, 0), FloatPayload::Of(values), wants_values,
                            world.now, reply.Done());
    REQUIRE(reply.answered());
    REQUIRE(reply.status().ok());
  }
  world.shard->Read(world.Header(0, 2, 0), ReadKind::kLatest, world.now, read.Done());
  const auto weights = (*read.result)->values.span();
  return {weights.begin(), weights.end()};
}

TEST_CASE("a large block is the same bits whether anybody waits for its values or not") {
  const std::vector<float> awaited = LargeBlockAfterUpdates(true);
  const std::vector<float> unread = LargeBlockAfterUpdates(false);
  REQUIRE(awaited.size() == unread.size());
  CHECK(awaited[0] == -1000 + 0.5f * (1000 + 1500));
  CHECK(std::memcmp(awaited.data(), unread.data(), awaited.size() * sizeof(float)) == 0);
}

TEST_CASE("averaged values are averaged, whatever the rule") {
  Shard::Options options = SgdOptions(v1::CONSISTENCY_MODE_SYNC, 1, 0.5);
  options.schema.set_trained(10);
  World world(options);
  world.Initialize(5);
  Reply reply;
  world.PushPull(0, 0, 1.0f, reply);
  CHECK((*reply.result)->values.span()[9] == 4.5f);
  // A tenth of the way from 5 to 1.
  CHECK((*reply.result)->values.span()[10] == Approx(4.6f));
}

TEST_CASE("optimizer state starts where the rule says: FedAdam's first step is the paper's") {
  Shard::Options options = SgdOptions(v1::CONSISTENCY_MODE_SYNC, 1, 0.5);
  v1::Adam& adam = *options.job.mutable_update()->mutable_adam();
  adam.set_beta2(0.99);
  adam.set_epsilon(0.1);
  adam.set_bias_correction(false);
  adam.set_initial_v(0.01);
  World world(options);
  world.Initialize(5);
  Reply reply;
  world.PushPull(0, 0, 2.0f, reply);
  CHECK(reply.first() == Approx(5 - 0.5 * 0.2 / (std::sqrt(0.99 * 0.01 + 0.01 * 4) + 0.1)));
}

TEST_CASE("equal weights: whoever has examples counts alike, in every mode") {
  for (const auto mode : {v1::CONSISTENCY_MODE_SYNC, v1::CONSISTENCY_MODE_ASYNC}) {
    for (const bool equal : {false, true}) {
      Shard::Options options = SgdOptions(mode, 3);
      v1::DeltaExchange& delta = *options.job.mutable_exchange()->mutable_delta();
      if (equal) delta.set_weighting(v1::WEIGHTING_EQUAL);
      World world(options);
      world.Initialize(0);
      std::vector<Reply> replies(3);
      world.PushPull(0, 0, 8, replies[0], 10);
      world.PushPull(1, 0, 16, replies[1], 30);
      world.PushPull(2, 0, 1000, replies[2], 0);
      const float sum = equal ? 8 + 16 : 8 + 3 * 16;
      const float shares = mode == v1::CONSISTENCY_MODE_ASYNC ? 3 : (equal ? 2 : 4);
      CAPTURE(mode, equal);
      CHECK(world.shard->store().CurrentWeights(0).span()[0] == Approx(-sum / shares));
    }
  }
}

TEST_CASE("bad messages are refused by name and change nothing") {
  World world(SgdOptions(v1::CONSISTENCY_MODE_ASYNC, 2));
  world.Initialize(5);
  struct Bad {
    v1::ExchangeHeader header;
    FloatPayload payload;
    std::string message;
  };
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<Bad> bad = {
      {world.Header(0, 0, 9), world.Values(0, 1),
       "worker 0, block 9, clock 0: header.block: the block does not exist: the model has 3 "
       "blocks"},
      {world.Header(2, 0, 0), world.Values(0, 1),
       "worker 2, block 0, clock 0: header.rank: the worker does not exist: the job has 2 workers"},
      {world.Header(1, 0, 2), world.Values(0, 1),
       "worker 1, block 2, clock 0: payload: 48 values, but the block has 4"},
      {world.Header(1, 0, 0), FloatPayload(),
       "worker 1, block 0, clock 0: payload: 0 values, but the block has 48"},
      {world.Header(1, 0, 1), world.Values(1, nan),
       "worker 1, block 1, clock 0: payload: value 0 (element 48 of the model) is not finite; has "
       "the "
       "training diverged?"},
      {world.Header(1, 0, 0, uint64_t{1} << 60), world.Values(0, 1),
       "worker 1, block 0, clock 0: header.examples: 1152921504606846976 is more than the maximum, "
       "281474976710656"},
      {world.Header(1, 3, 0), world.Values(0, 1),
       "header.clock: worker 1 sends clock 3 for block 0, which needs that worker's clock 0 first"},
  };
  for (const Bad& one : bad) {
    Reply reply;
    world.shard->Contribute(one.header, one.payload, true, world.now, reply.Done());
    REQUIRE(reply.answered());
    CHECK(reply.status().message() == one.message);
  }
  Reply reply;
  v1::ExchangeHeader header = world.Header(0, 0, 0);
  world.shard->Read(header, ReadKind::kLatest, world.now, reply.Done());
  CHECK(reply.first() == 5);
  CHECK(world.shard->updates_applied() == 0);
}

TEST_CASE("a shard refuses blocks of others") {
  Shard::Options options = SgdOptions(v1::CONSISTENCY_MODE_ASYNC, 1);
  options.job.mutable_servers()->set_count(2);
  options.server = 1;
  World world(options);
  Reply reply;
  world.PushPull(0, 0, 1.0f, reply);
  CHECK(reply.status().message() ==
        "worker 0, block 0, clock 0: header.block: the block belongs to shard 0, but this is shard "
        "1");
}

TEST_CASE("threads that hand in at once lose no update and no answer") {
  for (auto mode :
       {v1::CONSISTENCY_MODE_SYNC, v1::CONSISTENCY_MODE_BOUNDED, v1::CONSISTENCY_MODE_ASYNC}) {
    constexpr uint32_t kWorkers = 4;
    constexpr uint64_t kClocks = 200;
    Shard::Options options = SgdOptions(mode, kWorkers);
    options.job.mutable_consistency()->set_staleness(2);
    World world(options);
    world.Initialize(0);
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (uint32_t rank = 0; rank < kWorkers; ++rank) {
      threads.emplace_back([&, rank] {
        std::atomic<bool> answered{false};
        for (uint64_t clock = 0; clock < kClocks; ++clock) {
          for (uint32_t block = 0; block < 3; ++block) {
            answered = false;
            world.shard->Contribute(world.Header(rank, clock, block), world.Values(block, 1.0f),
                                    true, world.now, [&](absl::StatusOr<BlockReading> reading) {
                                      if (!reading.ok() || reading->values.span()[0] >= 0) ++wrong;
                                      answered = true;
                                      answered.notify_one();
                                    });
            answered.wait(false);
          }
        }
      });
    }
    for (auto& thread : threads) thread.join();
    CHECK(wrong == 0);
    CHECK(world.shard->store().CurrentWeights(2).span()[0] == -static_cast<float>(kClocks));
  }
}

}  // namespace
}  // namespace leeway::shard
