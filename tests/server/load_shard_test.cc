#include "server/load_shard.h"

#include <algorithm>
#include <vector>

#include "tests/server/checkpoint/sample.h"
#include "tests/server/shard_rig.h"
#include "tests/temp_folder.h"

namespace leeway {
namespace {

constexpr auto kSync = v1::CONSISTENCY_MODE_SYNC;
constexpr auto kAsync = v1::CONSISTENCY_MODE_ASYNC;

struct Before {
  v1::ConsistencyMode mode;
  uint32_t workers;
};

// Where every block of a job of `mode` goes on after the checkpoint at clock 5: by a sample that
// all of `before` have brought to that clock, or to progress 40 + i in block i.
std::vector<BlockProgress> GoOn(const Before& before, v1::ConsistencyMode mode, uint32_t workers,
                                bool uneven = false) {
  TempFolder run;
  Sample sample{.total = testing::kTotal,
                .servers = 1,
                .block_elements = testing::kBlock,
                .ranks = before.workers,
                .uneven = uneven,
                .keys = {kWeightsKey}};
  const std::string folder = WriteSample(run.path(), sample);
  v1::CheckpointManifest manifest = *ReadManifest(folder);
  manifest.mutable_job()->mutable_consistency()->set_mode(before.mode);
  manifest.mutable_job()->mutable_workers()->set_count(before.workers);
  REQUIRE(WriteManifest(folder, manifest).ok());

  testing::World world(testing::SgdOptions(mode, workers));
  const absl::Status loaded =
      LoadShard(folder, testing::SgdOptions(mode, workers).job, *world.shard);
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

TEST_CASE("With other workers everybody goes on at the slowest clock, the job at its mean one") {
  const auto more = GoOn({kAsync, 3}, kAsync, 6, true);
  // 41 updates by 3 workers are 13 and two thirds of a clock; so are 82 by 6.
  CHECK(more[1].version == 82);
  CHECK(more[1].clocks == Clocks(6, 11));
  CHECK(GoOn({kAsync, 4}, kAsync, 3, true)[2].version == 31);
  CHECK(GoOn({kSync, 3}, kSync, 5)[0].version == 5);
}

TEST_CASE("From sync to the other modes: as many updates as all have made") {
  for (const BlockProgress& block : GoOn({kSync, 3}, kAsync, 4)) {
    CHECK(block.version == 20);
    CHECK(block.clocks == Clocks(4, 5));
  }
}

}  // namespace
}  // namespace leeway
