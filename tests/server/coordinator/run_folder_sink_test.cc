// What the coordinator writes into the run folder, and reads from it.
#include "server/coordinator/run_folder_sink.h"

#include <filesystem>

#include "server/checkpoint/manifest.h"
#include "tests/catch.h"
#include "tests/temp_folder.h"

namespace leeway {
namespace {

constexpr uint64_t kJob = 77;

TEST_CASE(
    "a worker's state is kept in the run folder, adopted by another cut, and read on resume") {
  const TempFolder folder;
  const std::string& root = folder.path();
  RunFolderSink sink(root, kJob, 3, std::nullopt);
  CHECK(absl::IsNotFound(sink.ReadWorkerState(1).status()));
  auto writer = sink.WriteWorkerState({.clock = 15, .rank = 1, .incarnation = 4});
  REQUIRE(writer.ok());
  REQUIRE((*writer)->Append("local ").ok());
  REQUIRE((*writer)->Append("weights").ok());
  const auto saved = (*writer)->Finish();
  REQUIRE(saved.ok());
  REQUIRE(sink.AdoptWorkerState(15, saved->file(), 20).ok());

  REQUIRE(std::filesystem::exists(root + "/checkpoints/clock-000000020/" + saved->file()));
  v1::CheckpointManifest manifest;
  manifest.set_clock(20);
  v1::SavedWorkerState* state = manifest.add_worker_states();
  state->set_rank(1);
  *state->mutable_file() = *saved;
  RunFolderSink after(root, kJob, 3, manifest);
  auto reader = after.ReadWorkerState(1);
  REQUIRE(reader.ok());
  CHECK((*reader)->clock() == 15);
  CHECK((*reader)->size() == 13);
  CHECK(*(*reader)->Read(6) == "local ");
  CHECK(*(*reader)->Read(100) == "weights");
  CHECK((*reader)->Read(100)->empty());
  CHECK(absl::IsNotFound(after.ReadWorkerState(0).status()));
}

v1::SavedShard Save(RunFolderSink& sink, const CheckpointSink::StateOf& state,
                    const std::string& bytes) {
  auto writer = sink.WriteWorkerState(state);
  REQUIRE(writer.ok());
  REQUIRE((*writer)->Append(bytes).ok());
  const auto saved = (*writer)->Finish();
  REQUIRE(saved.ok());
  return *saved;
}

TEST_CASE("what a worker saves later takes no part of a complete checkpoint away") {
  const TempFolder folder;
  RunFolderSink sink(folder.path(), kJob, 3, std::nullopt);
  v1::CheckpointManifest manifest;
  manifest.set_clock(100);
  manifest.mutable_schema()->set_total(1);
  const std::string path = folder / "checkpoints/clock-000000100";
  // The slow worker's newest when the cut was whole was that of its own clock 90.
  const auto before = Save(sink, {90, 1, 5, 0}, "of 90");
  REQUIRE(sink.AdoptWorkerState(90, before.file(), 100).ok());
  *manifest.add_shards() = before;
  manifest.add_worker_states()->set_rank(1);
  *manifest.mutable_worker_states(0)->mutable_file() = before;
  REQUIRE(sink.WriteManifest(manifest).ok());
  const auto after = Save(sink, {100, 1, 5, 0}, "of 100");
  CHECK(CheckFileDigests(path, manifest) == absl::OkStatus());
  // It goes back, and comes to its clock 100 again.
  *manifest.mutable_worker_states(0)->mutable_file() = after;
  Save(sink, {100, 1, 5, 1}, "of 100 in another generation");
  CHECK(CheckFileDigests(path, manifest) == absl::OkStatus());
}

TEST_CASE("of two checkpoints that are written out of order the newer is the one to read from") {
  const TempFolder folder;
  RunFolderSink sink(folder.path(), kJob, 3, std::nullopt);
  for (const uint64_t clock : {200, 100}) {
    v1::CheckpointManifest manifest;
    manifest.set_clock(clock);
    manifest.mutable_schema()->set_total(1);
    const auto state = Save(sink, {clock, 1, 5, 0}, "of it");
    *manifest.add_shards() = state;
    manifest.add_worker_states()->set_rank(1);
    *manifest.mutable_worker_states(0)->mutable_file() = state;
    REQUIRE(sink.WriteManifest(manifest).ok());
  }
  CHECK((*sink.ReadWorkerState(1))->clock() == 200);
}

}  // namespace
}  // namespace leeway
