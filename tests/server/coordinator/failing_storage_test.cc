// A checkpoint's parts in a storage that fails at each of its operations in turn.
#include <memory>
#include <string>

#include "server/checkpoint/checkpoint_dir.h"
#include "server/checkpoint/manifest.h"
#include "server/checkpoint/shard_file.h"
#include "server/coordinator/run_folder_sink.h"
#include "tests/catch.h"
#include "tests/common/storage/memory_storage.h"

namespace leeway::failing_storage {
namespace {

constexpr char kRun[] = "s3://failing/run";

// Does what servers and the coordinator do for the cut at `clock`, up to the first error.
absl::Status WriteCheckpoint(RunFolderSink& sink, uint64_t clock) {
  const std::vector<float> values(100, static_cast<float>(clock));
  ShardContents contents{.job_id = 7, .clock = clock};
  contents.blocks.push_back({.range = {0, 100}, .version = clock, .clocks = {clock}});
  contents.blocks[0].values.emplace_back(kWeightsKey, values);
  ASSIGN_OR_RETURN(
      const v1::SavedShard saved,
      WriteShardFile(CheckpointFolder(kRun, clock) + "/" + ShardFileName(0, 1), contents));
  ASSIGN_OR_RETURN(auto state,
                   sink.WriteWorkerState({.clock = clock, .rank = 0, .incarnation = 1}));
  RETURN_IF_ERROR(state->Append("state"));
  v1::CheckpointManifest manifest;
  manifest.set_job_id(7);
  manifest.set_clock(clock);
  manifest.mutable_schema()->set_total(100);
  manifest.mutable_schema()->set_trained(100);
  *manifest.add_shards() = saved;
  v1::SavedWorkerState& kept = *manifest.add_worker_states();
  ASSIGN_OR_RETURN(*kept.mutable_file(), state->Finish());
  RETURN_IF_ERROR(sink.WriteManifest(manifest));
  return sink.RemoveOld([] { return std::set<uint64_t>(); });
}

TEST_CASE("a storage that fails at any operation leaves a checkpoint whole or absent") {
  int failed = 0;
  for (int at = 0; at < 100; ++at) {
    CAPTURE(at);
    const auto storage = std::make_shared<MemoryStorage>();
    MountStorage("s3://failing/", storage);
    RunFolderSink sink(kRun, 7, 1, std::nullopt);
    REQUIRE(WriteCheckpoint(sink, 10) == absl::OkStatus());
    int count = 0;
    bool dead = false;
    storage->fault = [&](const std::string&, const std::string&) {
      // Every operation from then on fails, as for a process that was killed.
      dead |= count++ == at;
      return dead ? absl::UnavailableError("away") : absl::OkStatus();
    };
    const absl::Status written = WriteCheckpoint(sink, 20);
    if (dead) CHECK(absl::IsUnavailable(FindNewestCheckpoint(kRun).status()));
    storage->fault = [](const std::string&, const std::string&) { return absl::OkStatus(); };
    const auto search = FindNewestCheckpoint(kRun);
    REQUIRE(search.ok());
    REQUIRE(search->newest.has_value());
    CHECK(search->damaged.empty());
    const bool announced =
        storage->files().count(CheckpointFolder(kRun, 20) + "/" + kManifestName) > 0;
    CHECK(search->newest->manifest.clock() == (announced ? 20 : 10));
    failed += written.ok() ? 0 : 1;
    if (!dead) break;
  }
  CHECK(failed > 10);
}

TEST_CASE("a record that cannot be written leaves the one before") {
  const auto storage = std::make_shared<MemoryStorage>();
  MountStorage("s3://failing/", storage);
  RunFolderSink sink(kRun, 7, 1, std::nullopt);
  v1::CoordinatorRecord record;
  record.set_generation(1);
  REQUIRE(sink.WriteRecord(record).ok());
  const auto before = storage->files();
  record.set_generation(2);
  storage->fault = [](const std::string& operation, const std::string&) {
    return operation == "finish" ? absl::UnavailableError("away") : absl::OkStatus();
  };
  CHECK(absl::IsUnavailable(sink.WriteRecord(record)));
  CHECK(storage->files() == before);
}

}  // namespace
}  // namespace leeway::failing_storage
