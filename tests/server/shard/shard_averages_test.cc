// Averaged elements (batch norm's running statistics) on a shard, for any mode, number of workers,
// momentum and steps of a clock, and for contributions that come late.
#include <algorithm>
#include <cmath>

#include "common/philox.h"
#include "common/update/averaging.h"
#include "tests/server/shard/shard_rig.h"

namespace leeway::shard_averages {
namespace {

using testing::Reply;
using testing::SgdOptions;
using testing::World;

constexpr uint64_t kBatch = 10;

struct Setting {
  v1::ConsistencyMode mode = v1::CONSISTENCY_MODE_ASYNC;
  uint32_t workers = 1;
  uint64_t steps = 1;
  double momentum = 0.1;
};

// All elements are averaged.
Shard::Options OptionsOf(const Setting& setting) {
  Shard::Options options = SgdOptions(setting.mode, setting.workers);
  options.job.mutable_consistency()->set_staleness(1000);
  options.length.set_steps_per_clock(setting.steps);
  options.schema.set_trained(0);
  v1::TensorSpec* tensor = options.schema.add_tensors();
  tensor->add_shape(testing::kTotal);
  tensor->set_momentum(setting.momentum);
  return options;
}

float Now(World& world) { return world.shard->store().CurrentWeights(0).span()[0]; }

// Covers every mode and number of workers, with one to many steps a clock.
Setting Some(uint64_t i) {
  constexpr v1::ConsistencyMode kModes[] = {v1::CONSISTENCY_MODE_SYNC, v1::CONSISTENCY_MODE_BOUNDED,
                                            v1::CONSISTENCY_MODE_ASYNC};
  constexpr double kMomenta[] = {0.001, 0.1, 0.5, 0.999, 1};
  constexpr uint64_t kSteps[] = {1, 2, 20, 500};
  constexpr uint32_t kWorkers[] = {1, 2, 3, 4, 8, 20, 100};
  return {kModes[i % 3], kWorkers[i % 7], kSteps[i % 4], kMomenta[i % 5]};
}
constexpr uint64_t kSettings = 3 * 7 * 4 * 5;

TEST_CASE("a clock of W workers moves averaged values as one running value, in every mode") {
  for (uint64_t i = 0; i < kSettings; ++i) {
    const Setting setting = Some(i);
    World world(OptionsOf(setting));
    world.Initialize(5);
    const double moved = MovedShare(setting.momentum, static_cast<double>(setting.steps));
    const bool sync = setting.mode == v1::CONSISTENCY_MODE_SYNC;
    double expected = 5;
    for (uint64_t clock = 0; clock < 4; ++clock) {
      double mean = 0;
      std::vector<Reply> replies(setting.workers);
      for (uint32_t rank = 0; rank < setting.workers; ++rank) {
        const auto value = static_cast<float>(rank % 3);
        world.PushPull(rank, clock, value, replies[rank], kBatch * setting.steps);
        mean += value / setting.workers;
        if (!sync) expected += moved / setting.workers * (value - expected);
      }
      if (sync) expected += moved * (mean - expected);
      CAPTURE(setting.mode, setting.workers, setting.steps, setting.momentum, clock);
      REQUIRE(Now(world) == Approx(expected).epsilon(1e-4).margin(1e-4));
    }
  }
}

TEST_CASE("averaged values never leave the range of what was seen, and find it, whoever is late") {
  for (uint64_t seed = 0; seed < kSettings; ++seed) {
    const Setting setting = Some(seed);
    if (setting.mode == v1::CONSISTENCY_MODE_SYNC) continue;
    World world(OptionsOf(setting));
    world.Initialize(1e6f);
    RandomStream stream(seed, RandomPurpose::kShuffle);
    // Some workers are far slower than others, and send what they computed long ago: batches were
    // at -100 then and are at 3 now. Some send more examples than a clock has.
    std::vector<uint64_t> clocks(setting.workers);
    float low = 1e6f, high = 1e6f;
    const auto hand_in = [&](uint32_t rank, float value, uint64_t examples) {
      Reply reply;
      world.PushPull(rank, clocks[rank]++, value, reply, examples);
      if (examples > 0) {
        low = std::min(low, value);
        high = std::max(high, value);
      }
      CAPTURE(setting.mode, setting.workers, setting.steps, setting.momentum, rank, value);
      const float slack = 1e-6f * (high - low);
      REQUIRE(Now(world) >= low - slack);
      REQUIRE(Now(world) <= high + slack);
    };
    const uint64_t nominal = kBatch * setting.steps;
    for (int i = 0; i < 50; ++i) {
      const auto rank = static_cast<uint32_t>(stream.Below(setting.workers));
      const uint64_t sizes[] = {0, 1, nominal / 2, nominal, 3 * nominal, uint64_t{1} << 47};
      hand_in(rank, static_cast<float>(-100 * stream.Normal()), sizes[stream.Below(6)]);
    }
    const double moved = MovedShare(setting.momentum, static_cast<double>(setting.steps));
    const double start = Now(world);
    // The number of contributions that bring the average within a thousandth. Rounding keeps small
    // steps from moving a large value.
    const double share = moved / setting.workers;
    const auto enough = static_cast<uint64_t>(std::min(2000.0, std::ceil(7 / share)));
    for (uint64_t i = 0; i < enough; ++i) {
      hand_in(static_cast<uint32_t>(stream.Below(setting.workers)), 3, nominal);
    }
    const double left = std::pow(1 - share, static_cast<double>(enough));
    CHECK(std::abs(Now(world) - 3) <= 1.01 * left * std::abs(start - 3) + 0.01);
    // A worker that comes now with what it computed long ago moves the average by its share, and no
    // more.
    const double before = Now(world);
    hand_in(setting.workers - 1, -100, nominal);
    CHECK(std::abs(Now(world) - before) <=
          1.001 * share * std::abs(-100 - before) + 1e-6 * (high - low));
  }
}

TEST_CASE("averaged values of one block may move by several momenta") {
  Shard::Options options = OptionsOf({.workers = 2, .momentum = 0.1});
  options.schema.mutable_tensors(0)->set_shape(0, 20);
  v1::TensorSpec* other = options.schema.add_tensors();
  other->set_offset(20);
  other->add_shape(testing::kTotal - 20);
  other->set_momentum(1);
  World world(options);
  world.Initialize(0);
  Reply reply;
  world.PushPull(0, 0, 8, reply);
  const auto values = world.shard->store().CurrentWeights(0);
  CHECK(values.span()[19] == Approx(0.4));
  CHECK(values.span()[20] == Approx(4));
}

}  // namespace
}  // namespace leeway::shard_averages
