// A contribution that is the mean of all workers' contributions (ExchangeHeader.of_all).
#include <limits>
#include <random>
#include <vector>

#include "tests/catch.h"
#include "tests/same_bits.h"
#include "tests/server/shard/shard_rig.h"

namespace leeway::shard_of_all {
namespace {

using Catch::Contains;
using testing::kBlock;
using testing::kTotal;
using testing::Reply;
using testing::SameBits;
using testing::World;

Shard::Options Ring(uint32_t workers, double learning_rate = 0.1) {
  Shard::Options options = testing::SgdOptions(v1::CONSISTENCY_MODE_SYNC, workers, learning_rate);
  options.job.mutable_topology()->mutable_all_reduce()->set_algorithm(
      v1::ALL_REDUCE_ALGORITHM_RING);
  return options;
}

// Every worker holds a shard, and this one has block 0.
void Begin(World& world) {
  Reply reply;
  world.shard->Initialize(world.Header(0, 0, 0), world.Values(0, 10), reply.Done());
  REQUIRE(reply.result->ok());
}

std::vector<float> Random(std::mt19937& draws) {
  std::normal_distribution<float> normal;
  std::vector<float> values(kBlock);
  for (float& value : values) value = normal(draws);
  return values;
}

void SendAll(World& world, uint32_t rank, uint64_t clock, const FloatPayload& values, Reply& reply,
             uint64_t examples = 30, uint64_t incarnation = 1) {
  v1::ExchangeHeader header = world.Header(rank, clock, 0, examples);
  header.set_of_all(true);
  header.set_incarnation(incarnation);
  world.shard->Contribute(header, values, true, world.now, reply.Done());
}

TEST_CASE("of all: the bits are those of one worker that sends the mean") {
  // The last elements are averaged, and move with each batch.
  const auto with_averages = [](Shard::Options options) {
    options.job.mutable_update()->mutable_sgd()->set_momentum(0.9);
    options.schema.set_trained(16);
    v1::TensorSpec& trained = *options.schema.add_tensors();
    trained.add_shape(16);
    v1::TensorSpec& averaged = *options.schema.add_tensors();
    averaged.set_offset(16);
    averaged.add_shape(kTotal - 16);
    averaged.set_momentum(0.1);
    return options;
  };
  World ring(with_averages(Ring(3)));
  World alone(with_averages(testing::SgdOptions(v1::CONSISTENCY_MODE_SYNC, 1, 0.1)));
  std::mt19937 draws(1);
  Begin(ring);
  Begin(alone);
  for (uint64_t clock = 0; clock < 5; ++clock) {
    const std::vector<float> mean = Random(draws);
    Reply of_all, of_one;
    SendAll(ring, clock % 3, clock, FloatPayload::Of(mean), of_all);
    alone.shard->Contribute(alone.Header(0, clock, 0), FloatPayload::Of(mean), true, alone.now,
                            of_one.Done());
    REQUIRE(of_all.answered());
    REQUIRE(of_one.answered());
    CHECK(SameBits((*of_all.result)->values.span(), (*of_one.result)->values.span()));
    CHECK((*of_all.result)->header.version() == clock + 1);
  }
}

TEST_CASE("of all: it counts exactly once, and whoever attaches continues after it") {
  World world(Ring(3, 1));
  Begin(world);
  const FloatPayload values = world.Values(0, 2);
  Reply first, again, next_life, other;
  SendAll(world, 1, 0, values, first);
  SendAll(world, 1, 0, values, again);
  SendAll(world, 1, 0, values, next_life, 30, 2);
  SendAll(world, 2, 0, values, other);
  for (const Reply* reply : {&first, &again, &next_life, &other}) {
    REQUIRE(reply->answered());
    CHECK(reply->first() == 8);
  }
  CHECK_FALSE((*first.result)->duplicate);
  CHECK((*again.result)->duplicate);
  CHECK((*next_life.result)->duplicate);
  CHECK((*other.result)->duplicate);
  CHECK(world.shard->updates_applied() == 1);
  for (const uint32_t rank : {0u, 1u, 2u}) CHECK(world.shard->Attach(rank, 3)->clock() == 1);
}

TEST_CASE("of all: a mean of no examples, and one that is not finite, change no value") {
  World world(Ring(2, 1));
  Begin(world);
  Reply none, bad, good;
  SendAll(world, 0, 0, world.Values(0, 2), none, 0);
  REQUIRE(none.answered());
  CHECK(none.first() == 10);
  SendAll(world, 0, 1, world.Values(0, std::numeric_limits<float>::quiet_NaN()), bad);
  REQUIRE(bad.answered());
  CHECK(absl::IsInvalidArgument(bad.status()));
  CHECK_THAT(std::string(bad.status().message()), Contains("worker 0, block 0, clock 1"));
  SendAll(world, 1, 1, world.Values(0, 3), good);
  REQUIRE(good.answered());
  CHECK(good.first() == 7);
}

struct NoContributions : ContributionListener {
  void OnLoaded(uint64_t) override {}
  void OnAccepted(uint32_t, uint64_t) override {}
  void OnRefused(uint32_t, uint64_t) override {}
  void OnLive(uint32_t, bool) override {}
  void OnCommitted(uint64_t) override {}
};

TEST_CASE("of all: other jobs refuse it by name") {
  const auto refusal = [](const Shard::Options& options, bool combined = false) {
    World world(options);
    Begin(world);
    v1::ExchangeHeader header = world.Header(0, 0, 0, 30);
    header.set_of_all(true);
    header.set_combined(combined);
    Reply reply;
    world.shard->Contribute(header, world.Values(0, 1), true, world.now, reply.Done());
    REQUIRE(reply.answered());
    CHECK(absl::IsInvalidArgument(reply.status()));
    return std::string(reply.status().message());
  };
  const char kOwn[] = "header.of_all: each worker of this job sends its own contribution";
  CHECK_THAT(refusal(testing::SgdOptions(v1::CONSISTENCY_MODE_SYNC, 2)), Contains(kOwn));
  Shard::Options direct = Ring(2);
  direct.job.mutable_topology()->mutable_all_reduce()->clear_algorithm();
  CHECK_THAT(refusal(direct), Contains(kOwn));
  Shard::Options async = Ring(2);
  async.job.mutable_consistency()->set_mode(v1::CONSISTENCY_MODE_ASYNC);
  CHECK_THAT(refusal(async), Contains(kOwn));
  Shard::Options sets = Ring(2);
  sets.contributions = std::make_shared<NoContributions>();
  CHECK_THAT(refusal(sets), Contains("header.of_all") && Contains("workers.on_worker_loss"));
  CHECK_THAT(refusal(Ring(2), true), Contains("header.combined"));
}

}  // namespace
}  // namespace leeway::shard_of_all
