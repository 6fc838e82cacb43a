// Checkpoints for tests: values are functions of key, element and clock, so that a reader knows
// what to expect.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

#include "common/blocks.h"
#include "common/files/files.h"
#include "server/checkpoint/checkpoint_dir.h"
#include "server/checkpoint/manifest.h"
#include "server/checkpoint/shard_file.h"
#include "server/checkpoint/worker_state.h"
#include "tests/catch.h"

namespace leeway {

inline constexpr uint64_t kJob = 0x1234567890abcdef;

inline float SampleValue(const std::string& key, uint64_t element, uint64_t clock) {
  return static_cast<float>(element) + (key == kWeightsKey ? 0.25f : 0.5f) +
         1000.0f * static_cast<float>(clock);
}

inline std::vector<float> SampleValues(const std::string& key, ElementRange range, uint64_t clock) {
  std::vector<float> values(range.count);
  for (uint64_t i = 0; i < range.count; ++i) values[i] = SampleValue(key, range.offset + i, clock);
  return values;
}

struct Sample {
  uint64_t clock = 5;
  uint64_t total = 100;
  uint32_t servers = 2;
  uint64_t block_elements = 16;
  uint32_t ranks = 3;
  // Block i of a server has progress i. If false, all blocks have the same progress.
  bool uneven = false;
  std::vector<std::string> keys = {kWeightsKey, "momentum"};
  // The number of updates of every block; with uneven blocks, block i has i more.
  std::optional<uint64_t> updates = {};
};

inline absl::StatusOr<v1::SavedShard> WriteSampleShard(const std::string& folder,
                                                       const Sample& sample, uint32_t index) {
  const BlockLayout layout =
      *BlockLayout::FromWire(sample.total, sample.servers, sample.block_elements);
  std::vector<std::vector<float>> memory;
  ShardContents contents{kJob, sample.clock, index, sample.servers, {}};
  memory.reserve(layout.blocks() * sample.keys.size());
  for (uint32_t i = index; i < layout.blocks(); i += sample.servers) {
    BlockContents& block = contents.blocks.emplace_back();
    block.range = layout.Range(i);
    block.version = sample.uneven ? 40 + i : sample.clock;
    for (uint32_t rank = 0; rank < sample.ranks; ++rank) {
      block.clocks.push_back(sample.uneven ? 10 + (i + rank) % 4 : sample.clock);
    }
    if (sample.updates) block.updates = *sample.updates + (sample.uneven ? i : 0);
    for (const std::string& key : sample.keys) {
      memory.push_back(SampleValues(key, block.range, sample.clock));
      block.values.emplace_back(key, memory.back());
    }
  }
  return WriteShardFile(folder + "/" + ShardFileName(index, sample.servers), contents);
}

inline v1::CheckpointManifest SampleManifest(const Sample& sample) {
  v1::CheckpointManifest manifest;
  manifest.set_job_id(kJob);
  manifest.set_clock(sample.clock);
  manifest.mutable_schema()->set_total(sample.total);
  manifest.mutable_schema()->set_trained(sample.total);
  v1::TensorSpec* tensor = manifest.mutable_schema()->add_tensors();
  tensor->set_name("all/weight");
  tensor->add_shape(sample.total);
  manifest.mutable_job()->mutable_metadata()->set_name("sample");
  manifest.mutable_job()->mutable_update()->mutable_sgd()->set_momentum(0.9);
  return manifest;
}

// Writes the checkpoint into the run folder as servers and coordinator do. Returns its folder.
inline std::string WriteSample(const std::string& run_dir, const Sample& sample) {
  const std::string folder = CheckpointFolder(run_dir, sample.clock);
  REQUIRE(MakeFolders(folder).ok());
  v1::CheckpointManifest manifest = SampleManifest(sample);
  for (uint32_t index = 0; index < sample.servers; ++index) {
    const auto saved = WriteSampleShard(folder, sample, index);
    REQUIRE(saved.ok());
    *manifest.add_shards() = *saved;
  }
  const auto state = WriteWorkerState(folder + "/" + WorkerStateFileName(1, 1, 5),
                                      {kJob, sample.clock, 1}, "what worker 1 kept");
  REQUIRE(state.ok());
  manifest.add_worker_states()->set_rank(1);
  *manifest.mutable_worker_states(0)->mutable_file() = *state;
  REQUIRE(SaveManifest(folder, manifest).ok());
  return folder;
}

// Gives a file this content, in place as damage does and not through a writer of this project. The
// file is not truncated first, because some file systems then wait for the disk.
inline void Overwrite(const std::string& path, const std::string& content) {
  const int file = open(path.c_str(), O_WRONLY | O_CREAT, 0666);
  REQUIRE(file >= 0);
  REQUIRE(write(file, content.data(), content.size()) == static_cast<ssize_t>(content.size()));
  REQUIRE(ftruncate(file, static_cast<off_t>(content.size())) == 0);
  REQUIRE(close(file) == 0);
}

}  // namespace leeway
