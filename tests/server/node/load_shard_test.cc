#include "server/node/load_shard.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "tests/server/checkpoint/sample.h"
#include "tests/server/shard/shard_rig.h"
#include "tests/temp_folder.h"

namespace leeway::load_shard {
namespace {

constexpr auto kSync = v1::CONSISTENCY_MODE_SYNC;
constexpr auto kBounded = v1::CONSISTENCY_MODE_BOUNDED;
constexpr auto kAsync = v1::CONSISTENCY_MODE_ASYNC;

struct Before {
  v1::ConsistencyMode mode;
  uint32_t workers;
};

// Returns where every block of a job of `mode` continues after the checkpoint at clock 5. The
// sample is one that all workers of `before` have brought to that clock, or to progress 40 + i in
// block i.
std::vector<BlockProgress> GoOn(const Before& before, v1::ConsistencyMode mode, uint32_t workers,
                                bool uneven = false, std::optional<uint64_t> updates = {},
                                uint64_t steps_per_epoch = 10) {
  TempFolder run;
  Sample sample{.total = testing::kTotal,
                .servers = 1,
                .block_elements = testing::kBlock,
                .ranks = before.workers,
                .uneven = uneven,
                .keys = {kWeightsKey},
                .updates = updates};
  const std::string folder = WriteSample(run.path(), sample);
  v1::CheckpointManifest manifest = *ReadManifest(folder);
  manifest.mutable_job()->mutable_consistency()->set_mode(before.mode);
  manifest.mutable_job()->mutable_workers()->set_count(before.workers);
  Shard::Options options = testing::SgdOptions(mode, workers);
  *manifest.mutable_length() = options.length;
  REQUIRE(SaveManifest(folder, manifest).ok());

  options.length.set_steps_per_epoch(steps_per_epoch);
  testing::World world(options);
  const absl::Status loaded = LoadShard(folder, options.job, options.length, *world.shard);
  REQUIRE(loaded == absl::OkStatus());
  const auto held = world.shard->Hold(5);
  REQUIRE(held.ok());
  std::vector<BlockProgress> progress;
  for (const HeldBlock& block : *held) progress.push_back(block.progress);
  REQUIRE(progress.size() == 3);
  return progress;
}

using Clocks = std::vector<uint64_t>;

TEST_CASE("A job of the same kind goes on where it was") {
  CHECK(GoOn({kSync, 3}, kSync, 3)[0].version == 5);
  CHECK(GoOn({kSync, 3}, kSync, 3)[0].clocks == Clocks{5, 5, 5});
  const auto uneven = GoOn({kAsync, 3}, kAsync, 3, true);
  CHECK(uneven[1].version == 41);
  CHECK(uneven[1].clocks == Clocks{11, 12, 13});
}

TEST_CASE("With other workers, batches or modes everybody goes on at the checkpoint's clock") {
  const auto more = GoOn({kAsync, 3}, kAsync, 6, true);
  CHECK(more[1].version == 30);
  CHECK(more[1].clocks == Clocks(6, 5));
  CHECK(GoOn({kAsync, 4}, kAsync, 3, true)[2].version == 15);
  CHECK(GoOn({kSync, 3}, kSync, 5)[0].version == 5);
  CHECK(GoOn({kAsync, 3}, kBounded, 3, true)[1].clocks == Clocks{11, 12, 13});
  const auto larger = GoOn({kAsync, 3}, kAsync, 3, true, {}, 5);
  CHECK(larger[1].version == 15);
  CHECK(larger[1].clocks == Clocks(3, 5));
  const auto sync = GoOn({kAsync, 3}, kSync, 3, true);
  CHECK(sync[1].version == 5);
  CHECK(sync[1].clocks == Clocks(3, 5));
}

TEST_CASE("From sync to the other modes: as many updates as all have made") {
  for (const BlockProgress& block : GoOn({kSync, 3}, kAsync, 4)) {
    CHECK(block.version == 20);
    CHECK(block.clocks == Clocks(4, 5));
  }
}

TEST_CASE("The optimizer state has seen as many updates as before, whatever the job is now") {
  for (const auto before : {kSync, kBounded, kAsync}) {
    for (const auto after : {kSync, kBounded, kAsync}) {
      for (const uint32_t were : {1u, 2u, 3u, 8u}) {
        for (const uint32_t are : {1u, 2u, 3u, 8u}) {
          CAPTURE(before, after, were, are);
          const auto blocks = GoOn({before, were}, after, are, before != kSync, 1234);
          CHECK(blocks[0].updates == 1234);
          CHECK(blocks[2].updates == (before == kSync ? 1234 : 1236));
        }
      }
    }
  }
  // A checkpoint of 0.1.0 has the version only.
  CHECK(GoOn({kAsync, 2}, kAsync, 4, true)[1].updates == 41);
}

// Returns how far the next update moves, with a gradient of 1 and an Adam whose moments are m = 1
// and v = 4.
float AdamMove(const BlockProgress& progress) {
  Shard::Options options = testing::SgdOptions(kAsync, 1, 0.5);
  options.job.mutable_update()->mutable_adam();
  testing::World world(options);
  BlockStore& store = world.shard->store();
  for (uint32_t block = 0; block < 3; ++block) {
    BlockValues values{store.Allocate(block),
                       {store.AllocateSlot(block), store.AllocateSlot(block)}};
    const size_t count = store.Range(block).count;
    std::fill_n(values.weights.mutable_data(), count, 0.0f);
    std::fill_n(values.slots[0].mutable_data(), count, 1.0f);
    std::fill_n(values.slots[1].mutable_data(), count, 4.0f);
    world.shard->Load(block, std::move(values), progress);
  }
  testing::Reply reply;
  world.PushPull(0, progress.clocks[0], 1, reply);
  return reply.first();
}

TEST_CASE("Adam's t counts the updates that its moments have seen, not the version") {
  for (const uint64_t updates : {0, 1, 10, 1000, 100000}) {
    for (const uint64_t version : {0, 7, 4000, 400000}) {
      const double t = static_cast<double>(updates) + 1;
      const double m = 1 / (1 - std::pow(0.9, t));
      const double v = (0.999 * 4 + 0.001) / (1 - std::pow(0.999, t));
      CAPTURE(updates, version);
      CHECK(AdamMove({.version = version, .clocks = {version}, .updates = updates}) ==
            Approx(-0.5 * m / (std::sqrt(v) + 1e-8)));
    }
  }
}

}  // namespace
}  // namespace leeway::load_shard
