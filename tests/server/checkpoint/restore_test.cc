#include "server/checkpoint/restore.h"

#include "tests/server/checkpoint/sample.h"
#include "tests/temp_folder.h"

namespace leeway::restore {
namespace {

using Catch::Matchers::Contains;

// Reads all blocks of another layout, and checks each value by its key.
void CheckBlocks(const CheckpointReader& reader, const Sample& sample, const BlockLayout& layout) {
  for (uint32_t i = 0; i < layout.blocks(); ++i) {
    const ElementRange range = layout.Range(i);
    for (const std::string& key : sample.keys) {
      std::vector<float> values(range.count, -1.0f);
      REQUIRE(reader.ReadRange(key, range, values).ok());
      REQUIRE(values == SampleValues(key, range, sample.clock));
    }
    const auto progress = reader.Progress(range);
    REQUIRE(progress.ok());
    REQUIRE(progress->version == sample.clock);
    REQUIRE(progress->clocks == std::vector<uint64_t>(sample.ranks, sample.clock));
  }
}

TEST_CASE("what 1, 2 or 3 servers wrote, any number of servers reads, however blocks are cut") {
  for (uint32_t writers : {1u, 2u, 3u, 9u}) {
    TempFolder run;
    const Sample sample{.servers = writers};
    const std::string folder = WriteSample(run.path(), sample);
    for (CheckpointVerify verify : {CheckpointVerify::kDigests, CheckpointVerify::kHeaders}) {
      const auto reader = CheckpointReader::Open(folder, verify);
      REQUIRE(reader.ok());
      REQUIRE(reader->manifest().clock() == sample.clock);
      REQUIRE(reader->manifest().job().metadata().name() == "sample");
      REQUIRE(reader->keys() == std::vector<std::string>{"momentum", "weights"});
      for (uint32_t readers : {1u, 2u, 3u}) {
        for (uint64_t elements : {1u, 7u, 16u, 33u, 100u, 200u}) {
          CheckBlocks(*reader, sample, *BlockLayout::FromWire(100, readers, elements));
        }
      }
      const auto all = reader->ReadAll(kWeightsKey);
      REQUIRE(all.ok());
      const std::vector<float> expected = SampleValues(kWeightsKey, {0, 100}, sample.clock);
      REQUIRE(std::equal(expected.begin(), expected.end(), all->data()));
      REQUIRE(all->size() == expected.size());
    }
  }
}

TEST_CASE(
    "saved blocks that differ give a range the largest version and each rank's smallest clock") {
  TempFolder run;
  const auto reader = CheckpointReader::Open(WriteSample(run.path(), {.uneven = true}));
  REQUIRE(reader.ok());
  // Block i, elements 16 i to 16 i + 15: version 40 + i, clocks 10 + (i + rank) mod 4.
  REQUIRE(reader->Progress({32, 16})->version == 42);
  REQUIRE(reader->Progress({32, 16})->clocks == std::vector<uint64_t>{12, 13, 10});
  REQUIRE(reader->Progress({47, 2})->version == 43);
  REQUIRE(reader->Progress({47, 2})->clocks == std::vector<uint64_t>{12, 10, 10});
}

TEST_CASE("a range has as many updates as its saved blocks, of an older build their version") {
  TempFolder run, older;
  const auto reader =
      CheckpointReader::Open(WriteSample(run.path(), {.uneven = true, .updates = 7}));
  REQUIRE(reader.ok());
  CHECK(reader->Progress({32, 16})->updates == 9);
  CHECK(reader->Progress({47, 2})->updates == 9);
  const auto before = CheckpointReader::Open(WriteSample(older.path(), {.uneven = true}));
  REQUIRE(before.ok());
  CHECK(before->Progress({32, 16})->updates == 42);
}

TEST_CASE("unknown keys and ranges outside of the model are refused") {
  TempFolder run;
  const auto reader = CheckpointReader::Open(WriteSample(run.path(), {}));
  REQUIRE(reader.ok());
  std::vector<float> room(10);
  REQUIRE(absl::IsNotFound(reader->ReadRange("m", {0, 10}, room)));
  for (ElementRange range :
       {ElementRange{91, 10}, ElementRange{100, 10}, ElementRange{~0ull, 10}}) {
    REQUIRE(absl::IsInvalidArgument(reader->ReadRange(kWeightsKey, range, room)));
    REQUIRE(absl::IsInvalidArgument(reader->Progress(range).status()));
  }
  REQUIRE(absl::IsInvalidArgument(reader->ReadRange(kWeightsKey, {0, 9}, room)));
  REQUIRE(absl::IsInvalidArgument(reader->Progress({5, 0}).status()));
}

TEST_CASE("a worker's state is found by rank") {
  TempFolder run;
  const auto reader = CheckpointReader::Open(WriteSample(run.path(), {}));
  REQUIRE(reader.ok());
  const auto state = WorkerStateReader::Open(reader->WorkerStatePath(1));
  REQUIRE(state.ok());
  REQUIRE(*state->Read(0, 1000) == "what worker 1 kept");
  REQUIRE(reader->WorkerStatePath(0).empty());
}

// Writes a checkpoint whose manifest lists the shard files without checking them.
std::string WriteUnchecked(const std::string& run_dir, const std::vector<Sample>& shards) {
  const Sample& sample = shards.front();
  const std::string folder = CheckpointFolder(run_dir, sample.clock);
  REQUIRE(MakeFolders(folder).ok());
  v1::CheckpointManifest manifest = SampleManifest(sample);
  for (uint32_t index = 0; index < shards.size(); ++index) {
    const auto saved = WriteSampleShard(folder, shards[index], index);
    REQUIRE(saved.ok());
    *manifest.add_shards() = *saved;
  }
  REQUIRE(SaveManifest(folder, manifest).ok());
  return folder;
}

TEST_CASE("intact shard files that do not belong together are refused, by name") {
  const Sample good;
  Sample clock = good, servers = good, cut = good, keys = good, ranks = good, shorter = good;
  clock.clock = 6;
  servers.servers = 3;
  cut.block_elements = 32;
  keys.keys = {kWeightsKey};
  ranks.ranks = 2;
  shorter.total = 84;
  for (const Sample& other : {clock, servers, cut, keys, ranks, shorter}) {
    TempFolder run;
    const auto reader = CheckpointReader::Open(WriteUnchecked(run.path(), {good, other}));
    REQUIRE(absl::IsDataLoss(reader.status()));
    REQUIRE_THAT(std::string(reader.status().message()), Contains("clock-000000005"));
  }
  TempFolder run;
  REQUIRE(CheckpointReader::Open(WriteUnchecked(run.path(), {good, good})).ok());
}

}  // namespace
}  // namespace leeway::restore
