#include "server/checkpoint/checkpoint_dir.h"

#include <filesystem>
#include <functional>
#include <set>

#include "common/files/sha256.h"
#include "common/status.h"
#include "server/checkpoint/coordinator_record.h"
#include "tests/server/checkpoint/sample.h"
#include "tests/temp_folder.h"

namespace leeway::checkpoint_dir {
namespace {

using Catch::Matchers::Contains;

absl::Status RemoveOld(const std::string& run_dir, uint32_t keep, uint64_t newest = 1000) {
  ASSIGN_OR_RETURN(const std::vector<uint64_t> old, OldCheckpoints(run_dir, newest, keep));
  for (const uint64_t clock : old) RETURN_IF_ERROR(RemoveCheckpoint(run_dir, clock));
  return absl::OkStatus();
}

Sample At(uint64_t clock) { return {.clock = clock, .total = 20}; }

std::set<std::string> Folders(const std::string& run_dir) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(run_dir + "/checkpoints")) {
    names.insert(entry.path().filename().string());
  }
  return names;
}

TEST_CASE("names sort as clocks do") {
  REQUIRE(CheckpointFolder("runs/a", 500) == "runs/a/checkpoints/clock-000000500");
  REQUIRE(CheckpointFolder("r", 12345678901) == "r/checkpoints/clock-12345678901");
  REQUIRE(ShardFileName(0, 2) == "shard-0-of-2.lwck");
  REQUIRE(ShardFileName(0, 2, 4) == "shard-0-of-2-epoch-4.lwck");
  REQUIRE(ShardFileName(0, 2, 4, 1) == "shard-0-of-2-epoch-4-generation-1.lwck");
  REQUIRE(ShardFileName(0, 2, 0, 1) == "shard-0-of-2-generation-1.lwck");
  REQUIRE(WorkerStateFileName(1, 2, 90) == "worker-1-life-2-clock-90.lwck");
  REQUIRE(WorkerStateFileName(1, 2, 90, 3) == "worker-1-life-2-clock-90-generation-3.lwck");
}

TEST_CASE(
    "the newest complete checkpoint is found, unfinished and damaged ones are passed over aloud") {
  TempFolder run;
  REQUIRE_FALSE(FindNewestCheckpoint(run.path())->newest.has_value());
  for (uint64_t clock : {100, 200, 300, 1000}) WriteSample(run.path(), At(clock));
  auto search = FindNewestCheckpoint(run.path());
  REQUIRE(search.ok());
  REQUIRE(search->newest->folder == CheckpointFolder(run.path(), 1000));
  REQUIRE(search->newest->manifest.clock() == 1000);
  REQUIRE(search->warnings.empty());

  REQUIRE(RemoveTree(CheckpointFolder(run.path(), 1000) + "/MANIFEST.json").ok());
  const std::string shard = CheckpointFolder(run.path(), 300) + "/shard-1-of-2.lwck";
  std::string content = *ReadFile(shard, 1 << 20);
  content[content.size() / 2] ^= 1;
  Overwrite(shard, content);
  search = FindNewestCheckpoint(run.path());
  REQUIRE(search.ok());
  REQUIRE(search->newest->manifest.clock() == 200);
  REQUIRE(search->warnings.size() == 2);
  REQUIRE_THAT(search->warnings[0], Contains("clock-000001000") && Contains("never finished"));
  REQUIRE_THAT(search->warnings[1], Contains(shard) && Contains("SHA-256"));
}

TEST_CASE("a checkpoint under another clock's name is not taken") {
  TempFolder run;
  const std::string folder = WriteSample(run.path(), At(100));
  std::filesystem::rename(folder, CheckpointFolder(run.path(), 900));
  std::filesystem::create_directory(run / "checkpoints/clock-0000x");
  std::filesystem::create_directory(run / "checkpoints/clock-1");
  const auto search = FindNewestCheckpoint(run.path());
  REQUIRE(search.ok());
  REQUIRE_FALSE(search->newest.has_value());
  REQUIRE(search->warnings.size() == 1);
}

TEST_CASE("removal keeps the newest complete ones and whatever is newer than they are") {
  TempFolder run;
  for (uint64_t clock : {1, 2, 3, 4, 5}) WriteSample(run.path(), At(clock));
  // Clock 2: unfinished and old. Clock 4: unfinished, between complete ones. Clock 6: being
  // written.
  for (uint64_t clock : {2, 4}) {
    REQUIRE(RemoveTree(CheckpointFolder(run.path(), clock) + "/MANIFEST.json").ok());
  }
  REQUIRE(MakeFolders(CheckpointFolder(run.path(), 6)).ok());
  REQUIRE(RemoveOld(run.path(), 2).ok());
  REQUIRE(Folders(run.path()) ==
          std::set<std::string>{"clock-000000003", "clock-000000005", "clock-000000006"});
  REQUIRE(FindNewestCheckpoint(run.path())->newest->manifest.clock() == 5);
  REQUIRE(RemoveOld(run.path(), 0).ok());
  REQUIRE(Folders(run.path()) == std::set<std::string>{"clock-000000005", "clock-000000006"});
}

TEST_CASE("nothing is removed before a newer checkpoint is complete") {
  TempFolder run;
  REQUIRE(RemoveOld(run.path(), 1).ok());
  const std::string old = WriteSample(run.path(), At(1));
  const std::string damaged = WriteSample(run.path(), At(2));
  Overwrite(damaged + "/shard-0-of-2.lwck", "short");
  REQUIRE(MakeFolders(CheckpointFolder(run.path(), 3)).ok());
  REQUIRE(RemoveOld(run.path(), 1).ok());
  REQUIRE(Folders(run.path()).size() == 3);
  REQUIRE(FindNewestCheckpoint(run.path())->newest->folder == old);
}

TEST_CASE("what looks complete beyond the newest does not count, for it was passed over") {
  TempFolder run;
  for (uint64_t clock : {3000, 4000, 4500, 5000}) WriteSample(run.path(), At(clock));
  REQUIRE(RemoveOld(run.path(), 1, 4500).ok());
  REQUIRE(Folders(run.path()) == std::set<std::string>{"clock-000004500", "clock-000005000"});
}

TEST_CASE("a search tells whether what it passed over was ever finished") {
  TempFolder run;
  REQUIRE(MakeFolders(CheckpointFolder(run.path(), 3)).ok());
  const auto lost = [&] { return CheckNothingLost(run.path(), *FindNewestCheckpoint(run.path())); };
  REQUIRE(FindNewestCheckpoint(run.path())->damaged.empty());
  REQUIRE(lost().ok());
  const std::string folder = WriteSample(run.path(), At(2));
  REQUIRE(FindNewestCheckpoint(run.path())->damaged.empty());
  const std::string newer = WriteSample(run.path(), At(4));
  REQUIRE(RemoveTree(newer + "/shard-0-of-2.lwck").ok());
  REQUIRE_FALSE(FindNewestCheckpoint(run.path())->damaged.empty());
  REQUIRE(lost().ok());
  REQUIRE(RemoveTree(folder + "/shard-0-of-2.lwck").ok());
  REQUIRE_FALSE(FindNewestCheckpoint(run.path())->newest.has_value());
  REQUIRE(absl::IsDataLoss(lost()));
  REQUIRE_THAT(std::string(lost().message()), Contains("restore a checkpoint"));
}

TEST_CASE("a run whose record tells of a checkpoint has lost it if there is none") {
  TempFolder run;
  const auto lost = [&](bool checkpointed, v1::JobState outcome) {
    v1::CoordinatorRecord record;
    record.set_checkpointed(checkpointed);
    record.set_outcome(outcome);
    REQUIRE(WriteCoordinatorRecord(run.path(), record).ok());
    return CheckNothingLost(run.path(), *FindNewestCheckpoint(run.path()));
  };
  CHECK(CheckNothingLost(run.path(), *FindNewestCheckpoint(run.path())).ok());
  for (const auto outcome : {v1::JOB_STARTING, v1::JOB_STOPPED, v1::JOB_FAILED}) {
    CHECK(lost(false, outcome).ok());
    CHECK(absl::IsDataLoss(lost(true, outcome)));
  }
  CHECK_THAT(std::string(lost(false, v1::JOB_FINISHED).message()), Contains("has finished"));
  // A folder that is left over from an incomplete checkpoint does not count.
  REQUIRE(MakeFolders(CheckpointFolder(run.path(), 3)).ok());
  CHECK(absl::IsDataLoss(lost(true, v1::JOB_STARTING)));
  WriteSample(run.path(), At(4));
  CHECK(lost(true, v1::JOB_FINISHED).ok());
}

TEST_CASE("a job goes on from its own model only, in any mode") {
  v1::CheckpointManifest manifest;
  manifest.mutable_length()->set_steps_per_epoch(10);
  v1::TrainingJob job;
  for (v1::TrainingJob* each : {manifest.mutable_job(), &job}) {
    each->mutable_model()->add_layers()->mutable_dense()->set_units(3);
  }
  const auto check = [&](v1::ConsistencyMode before, v1::ConsistencyMode after) {
    manifest.mutable_job()->mutable_consistency()->set_mode(before);
    job.mutable_consistency()->set_mode(after);
    return CheckGoesOn(manifest, job);
  };
  const auto sync = v1::CONSISTENCY_MODE_SYNC, async = v1::CONSISTENCY_MODE_ASYNC;
  REQUIRE(check(sync, sync).ok());
  REQUIRE(check(sync, async).ok());
  REQUIRE(check(async, v1::CONSISTENCY_MODE_BOUNDED).ok());
  REQUIRE(check(async, sync).ok());
  job.mutable_model()->mutable_layers(0)->mutable_dense()->set_units(4);
  REQUIRE(absl::IsFailedPrecondition(check(sync, sync)));
}

TEST_CASE(
    "from a checkpoint that does not say its length a job goes on with the same numbers only") {
  v1::CheckpointManifest manifest;
  v1::TrainingJob& before = *manifest.mutable_job();
  before.mutable_workers()->set_count(2);
  before.mutable_data()->set_batch_size(16);
  const auto check = [&](const std::function<void(v1::TrainingJob&)>& change) {
    v1::TrainingJob job = before;
    change(job);
    return std::string(CheckGoesOn(manifest, job).message());
  };
  CHECK(check([](v1::TrainingJob& job) { job.mutable_stop()->set_epochs(9); }).empty());
  const std::vector<std::function<void(v1::TrainingJob&)>> changes = {
      [](v1::TrainingJob& job) { job.mutable_workers()->set_count(3); },
      [](v1::TrainingJob& job) { job.mutable_data()->set_batch_size(8); },
      [](v1::TrainingJob& job) { job.mutable_data()->set_examples(8); },
      [](v1::TrainingJob& job) { job.mutable_data()->mutable_partition()->mutable_by_file(); },
      [](v1::TrainingJob& job) { job.mutable_exchange()->mutable_delta()->set_local_steps(2); },
      [](v1::TrainingJob& job) {
        job.mutable_consistency()->set_mode(v1::CONSISTENCY_MODE_ASYNC);
      }};
  for (const auto& change : changes) {
    CHECK_THAT(check(change), Contains("did not record how much data a clock covers"));
  }
  manifest.mutable_length()->set_steps_per_epoch(10);
  for (const auto& change : changes) CHECK(check(change).empty());
}

TEST_CASE("a job goes on with an update rule only whose slots were saved") {
  v1::CheckpointManifest manifest;
  manifest.set_clock(7);
  v1::TrainingJob job;
  v1::TrainingJob& before = *manifest.mutable_job();
  before.mutable_update()->mutable_sgd()->set_momentum(0.9);
  job.mutable_update()->mutable_sgd()->set_momentum(0.5);
  CHECK(CheckGoesOn(manifest, job).ok());
  job.mutable_update()->mutable_sgd()->set_momentum(0);
  CHECK(CheckGoesOn(manifest, job).ok());
  job.mutable_update()->mutable_adam();
  const std::string refused(CheckGoesOn(manifest, job).message());
  CHECK_THAT(refused, Contains("update: the checkpoint at clock 7 has no 'm'"));
  before.mutable_update()->mutable_adamw();
  CHECK(CheckGoesOn(manifest, job).ok());
  // The elastic centre has no optimizer state.
  before.mutable_exchange()->mutable_elastic();
  CHECK(absl::IsFailedPrecondition(CheckGoesOn(manifest, job)));
  job.mutable_exchange()->mutable_elastic();
  CHECK(CheckGoesOn(manifest, job).ok());
}

TEST_CASE("a manifest is not written before the files that it names are there in full") {
  TempFolder run;
  const std::string folder = WriteSample(run.path(), At(7));
  const v1::CheckpointManifest manifest = *ReadManifest(folder);
  REQUIRE(RemoveTree(folder + "/MANIFEST.json").ok());
  const std::string shard = folder + "/shard-1-of-2.lwck", content = *ReadFile(shard, 1 << 20);
  REQUIRE(RemoveTree(shard).ok());
  REQUIRE(absl::IsFailedPrecondition(SaveManifest(folder, manifest)));
  Overwrite(shard, content.substr(1));
  REQUIRE(absl::IsFailedPrecondition(SaveManifest(folder, manifest)));
  REQUIRE(absl::IsNotFound(ReadManifest(folder).status()));
  Overwrite(shard, content);
  REQUIRE(SaveManifest(folder, manifest).ok());
  REQUIRE(ReadManifest(folder).ok());
}

TEST_CASE("an intact manifest of nonsense or of a newer format is refused") {
  TempFolder run;
  const std::string folder = WriteSample(run.path(), At(7));
  const auto read = [&](const std::string& json) {
    Overwrite(folder + "/MANIFEST.json", json + "sha256 " + HexSha256(json) + "\n");
    return ReadManifest(folder).status();
  };
  REQUIRE(absl::IsUnimplemented(read(R"({"format": 2, "new_field": [1]})")));
  REQUIRE(absl::IsDataLoss(read(R"({"format": 1})")));
  REQUIRE(absl::IsDataLoss(read("not json")));
  REQUIRE(absl::IsDataLoss(read("")));
  for (const std::string name : {"../a", "/etc/passwd", "..", ""}) {
    const absl::Status status =
        read(R"({"format": 1, "schema": {"total": "1"}, "shards": [{"file": ")" + name + R"("}]})");
    REQUIRE(absl::IsDataLoss(status));
    REQUIRE_THAT(std::string(status.message()), Contains("plain"));
  }
}

}  // namespace
}  // namespace leeway::checkpoint_dir
