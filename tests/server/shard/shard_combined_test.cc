// Workers of one host that combine their contributions, as a shard sees them.
#include <limits>

#include "tests/catch.h"
#include "tests/server/shard/shard_rig.h"

namespace leeway::shard_combined {
namespace {

using testing::kBlock;
using testing::kTotal;
using testing::Reply;
using testing::World;

Shard::Options Combining(uint32_t workers, double learning_rate = 1) {
  Shard::Options options = testing::SgdOptions(v1::CONSISTENCY_MODE_SYNC, workers, learning_rate);
  options.job.mutable_workers()->set_per_host(v1::PER_HOST_COMBINE);
  return options;
}

// Says that the sender's contribution is part of another one.
void Note(World& world, uint32_t rank, uint64_t clock, Reply& reply, uint32_t block = 0) {
  v1::ExchangeHeader header = world.Header(rank, clock, block, 0);
  header.set_combined(true);
  world.shard->Contribute(header, {}, true, world.now, reply.Done());
}

TEST_CASE("a combined contribution is waited for, answered, and not added up") {
  World world(Combining(3));
  world.Initialize(10);
  Reply leader, other, alone;
  world.PushPull(0, 0, 2, leader, 30);
  world.PushPull(2, 0, 6, alone, 10);
  CHECK_FALSE(leader.answered());
  Note(world, 1, 0, other);
  for (const Reply* reply : {&leader, &other, &alone}) {
    REQUIRE(reply->answered());
    // 10 - (30 * 2 + 10 * 6) / 40
    CHECK(reply->first() == 7);
  }
}

TEST_CASE("a combined contribution counts once, whatever is repeated") {
  World world(Combining(2));
  world.Initialize(10);
  Reply first, again, leader, late;
  Note(world, 1, 0, first);
  Note(world, 1, 0, again);
  CHECK_FALSE(first.answered());
  world.PushPull(0, 0, 2, leader, 30);
  CHECK(first.first() == 8);
  CHECK(again.first() == 8);
  Note(world, 1, 0, late);
  CHECK(late.first() == 8);
  // A leader's new life may say so about a clock that is over.
  Reply leader_late;
  Note(world, 0, 0, leader_late);
  CHECK(leader_late.first() == 8);
}

TEST_CASE("a clock of which everybody says that another has it changes nothing") {
  World world(Combining(2));
  world.Initialize(10);
  for (uint64_t clock = 0; clock < 2; ++clock) {
    Reply first, second;
    Note(world, 0, clock, first);
    Note(world, 1, clock, second);
    REQUIRE(second.answered());
    CHECK(first.first() == 10);
    CHECK((*second.result)->header.version() == clock + 1);
  }
  Reply first, second;
  world.PushPull(0, 2, 1, first);
  Note(world, 1, 2, second);
  CHECK(second.first() == 9);
}

TEST_CASE("a sum that is not finite is its sender's, and the others' notes stay") {
  World world(Combining(2));
  world.Initialize(10);
  Reply note, bad, good;
  Note(world, 1, 0, note);
  world.PushPull(0, 0, std::numeric_limits<float>::quiet_NaN(), bad);
  REQUIRE(bad.answered());
  CHECK(absl::IsInvalidArgument(bad.status()));
  CHECK_THAT(std::string(bad.status().message()), Catch::Contains("worker 0"));
  CHECK_FALSE(note.answered());
  world.PushPull(0, 0, 3, good);
  CHECK(note.first() == 7);
}

TEST_CASE("a combined contribution that cannot be is refused, naming sender and field") {
  const auto refusal = [](World& world, const v1::ExchangeHeader& header, FloatPayload payload) {
    Reply reply;
    world.shard->Contribute(header, std::move(payload), true, world.now, reply.Done());
    REQUIRE(reply.answered());
    CHECK(absl::IsInvalidArgument(reply.status()));
    return std::string(reply.status().message());
  };
  World world(Combining(2));
  world.Initialize(10);
  v1::ExchangeHeader header = world.Header(1, 0, 2, 0);
  header.set_combined(true);
  CHECK(refusal(world, header, world.Values(2, 1)) ==
        "worker 1, block 2, clock 0: payload: 16 bytes; a combined contribution has no payload, "
        "because its values are in the contribution of another worker");
  header.set_examples(4);
  CHECK(refusal(world, header, {}) ==
        "worker 1, block 2, clock 0: header.examples: 4 examples; a combined contribution has no "
        "examples, because they are counted in the contribution of another worker");
  header.set_examples(0);
  header.set_rank(2);
  CHECK_THAT(refusal(world, header, {}), Catch::Contains("header.rank"));
  World separate(testing::SgdOptions(v1::CONSISTENCY_MODE_SYNC, 2));
  separate.Initialize(10);
  header.set_rank(1);
  CHECK_THAT(refusal(separate, header, {}),
             Catch::StartsWith("worker 1, block 2, clock 0: header.combined: "));
}

TEST_CASE("a first version cannot be part of another one") {
  World world(Combining(2));
  v1::ExchangeHeader header = world.Header(0, 0, 0, 0);
  header.set_combined(true);
  Reply reply;
  world.shard->Initialize(header, {}, reply.Done());
  CHECK(absl::IsInvalidArgument(reply.status()));
  world.Initialize(1);
}

// Returns the value that `workers` workers of one host give a model of averaged elements only, in
// two clocks of `steps` batches, each worker alone or all combined.
float Averaged(uint32_t workers, uint64_t steps, bool combine) {
  Shard::Options options =
      combine ? Combining(workers) : testing::SgdOptions(v1::CONSISTENCY_MODE_SYNC, workers);
  options.schema.set_trained(0);
  options.length.set_steps_per_clock(steps);
  options.length.set_steps(steps + 1);  // the last clock has one
  World world(options);
  world.Initialize(10);
  float last = 0;
  for (uint64_t clock = 0; clock < 2; ++clock) {
    const uint64_t examples = 10 * (clock == 0 ? steps : 1);
    float sum = 0;
    std::vector<Reply> replies(workers);
    for (uint32_t rank = 0; rank < workers; ++rank) {
      const float value = static_cast<float>(rank + clock);
      sum += value;
      if (!combine) world.PushPull(rank, clock, value, replies[rank], examples);
      if (combine && rank > 0) Note(world, rank, clock, replies[rank]);
    }
    const float mean = sum / static_cast<float>(workers);
    if (combine) world.PushPull(0, clock, mean, replies[0], examples * workers);
    last = replies[0].first();
  }
  return last;
}

TEST_CASE("running statistics move by the batches that each worker has had, not by their sum") {
  const uint32_t workers = GENERATE(2, 4);
  const uint64_t steps = GENERATE(1, 3, 20);
  CHECK(Averaged(workers, steps, true) == Approx(Averaged(workers, steps, false)).epsilon(1e-6));
}

}  // namespace
}  // namespace leeway::shard_combined
