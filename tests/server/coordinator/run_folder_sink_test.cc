// What the coordinator writes into the run folder, and reads from it.
#include "server/coordinator/run_folder_sink.h"

#include <atomic>
#include <filesystem>
#include <thread>

#include "server/checkpoint/checkpoint_dir.h"
#include "server/checkpoint/manifest.h"
#include "tests/catch.h"
#include "tests/temp_folder.h"

namespace leeway::run_folder_sink {
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

TEST_CASE("of a program's state in a gradient exchange a rank without one has the first one") {
  const TempFolder folder;
  RunFolderSink sink(folder.path(), kJob, 3, std::nullopt);
  auto writer = sink.WriteWorkerState({20, 1, 5, 0});
  REQUIRE(writer.ok());
  REQUIRE((*writer)->Append("a scheduler's").ok());
  const auto saved = (*writer)->Finish();
  REQUIRE(saved.ok());
  v1::CheckpointManifest manifest;
  manifest.set_clock(20);
  manifest.mutable_job()->mutable_exchange()->mutable_gradient();
  v1::SavedWorkerState* state = manifest.add_worker_states();
  state->set_rank(1);
  *state->mutable_file() = *saved;
  CHECK(absl::IsNotFound(
      RunFolderSink(folder.path(), kJob, 3, manifest).ReadWorkerState(7).status()));
  manifest.mutable_job()->mutable_model()->set_type(v1::MODEL_TYPE_EXTERNAL);
  CHECK((*RunFolderSink(folder.path(), kJob, 3, manifest).ReadWorkerState(7))->size() == 13);
  // In this exchange each worker keeps its own state.
  manifest.mutable_job()->mutable_exchange()->mutable_delta();
  CHECK(absl::IsNotFound(
      RunFolderSink(folder.path(), kJob, 3, manifest).ReadWorkerState(7).status()));
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
  // When the cut was whole, the slow worker's newest state was that of its own clock 90.
  const auto before = Save(sink, {90, 1, 5, 0}, "of 90");
  REQUIRE(sink.AdoptWorkerState(90, before.file(), 100).ok());
  *manifest.add_shards() = before;
  manifest.add_worker_states()->set_rank(1);
  *manifest.mutable_worker_states(0)->mutable_file() = before;
  REQUIRE(sink.WriteManifest(manifest).ok());
  const auto after = Save(sink, {100, 1, 5, 0}, "of 100");
  CHECK(CheckFileDigests(path, manifest) == absl::OkStatus());
  // The worker goes back, and comes to its clock 100 again.
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

// Writes a whole checkpoint with a state of rank 1.
void Complete(RunFolderSink& sink, uint64_t clock) {
  v1::CheckpointManifest manifest;
  manifest.set_clock(clock);
  manifest.mutable_schema()->set_total(1);
  *manifest.add_shards() = Save(sink, {clock, 1, 5, 0}, "of it");
  manifest.add_worker_states()->set_rank(1);
  *manifest.mutable_worker_states(0)->mutable_file() = manifest.shards(0);
  REQUIRE(sink.WriteManifest(manifest).ok());
}

bool Exists(const TempFolder& folder, uint64_t clock) {
  return std::filesystem::exists(CheckpointFolder(folder.path(), clock));
}

TEST_CASE("old checkpoints go, but not where a state is needed or is being written") {
  const TempFolder folder;
  RunFolderSink sink(folder.path(), kJob, 1, std::nullopt);
  Complete(sink, 10);
  Save(sink, {12, 2, 5, 0}, "of a slow worker");
  auto writer = sink.WriteWorkerState({14, 3, 5, 0});
  REQUIRE(writer.ok());
  REQUIRE((*writer)->Append("half of it").ok());
  Complete(sink, 20);
  // Asked at a time when no process can reach what is removed.
  REQUIRE(sink.RemoveOld([] { return std::set<uint64_t>{12}; }).ok());
  CHECK_FALSE(Exists(folder, 10));
  CHECK(Exists(folder, 12));
  CHECK((*writer)->Finish().ok());
  writer->reset();
  REQUIRE(sink.RemoveOld([] { return std::set<uint64_t>(); }).ok());
  CHECK_FALSE(Exists(folder, 12));
  CHECK_FALSE(Exists(folder, 14));
  CHECK(Exists(folder, 20));
}

TEST_CASE(
    "nobody enters a folder while it is being removed, nor is one removed with somebody in it") {
  FolderUse use;
  for (int i = 0; i < 200; ++i) {
    auto claim = use.Claim(10);
    REQUIRE(claim);
    CHECK_FALSE(use.Claim(10));
    std::atomic<bool> coming = false;
    std::atomic<bool> removed = false;
    bool waited = false;
    std::thread other([&] {
      coming = true;
      const FolderUse::Hold hold = use.Enter(10);
      waited = removed;
    });
    while (!coming) std::this_thread::yield();
    const FolderUse::Hold elsewhere = use.Enter(20);
    removed = true;
    claim.reset();
    other.join();
    CHECK(waited);
  }
  std::optional<FolderUse::Hold> first = use.Enter(10);
  std::optional<FolderUse::Hold> second = use.Enter(10);
  first.reset();
  CHECK_FALSE(use.Claim(10));
  second.reset();
  CHECK(use.Claim(10));
}

TEST_CASE("whoever comes to a folder that is being removed finds it empty, or makes it anew") {
  const TempFolder folder;
  RunFolderSink sink(folder.path(), kJob, 1, std::nullopt);
  Complete(sink, 10);
  Complete(sink, 20);
  absl::Status written;
  std::thread writer;
  const absl::Status removed = sink.RemoveOld([&] {
    writer = std::thread([&] {
      auto state = sink.WriteWorkerState({10, 1, 6, 0});
      written = state.ok() ? (*state)->Finish().status() : state.status();
    });
    return std::set<uint64_t>();
  });
  writer.join();
  CHECK(removed.ok());
  CHECK(written.ok());
  CHECK(Exists(folder, 10));
  CHECK_FALSE(std::filesystem::exists(CheckpointFolder(folder.path(), 10) + "/MANIFEST.json"));
}

TEST_CASE("a state is there for whoever asks for it, while newer checkpoints take its place") {
  const TempFolder folder;
  RunFolderSink sink(folder.path(), kJob, 1, std::nullopt);
  Complete(sink, 1);
  std::atomic<bool> over = false;
  absl::Status read;
  std::thread reader([&] {
    while (!over && read.ok()) read = sink.ReadWorkerState(1).status();
  });
  for (uint64_t clock = 2; clock < 100; ++clock) {
    Complete(sink, clock);
    CHECK(sink.RemoveOld([] { return std::set<uint64_t>(); }).ok());
  }
  over = true;
  reader.join();
  CHECK(read == absl::OkStatus());
}

TEST_CASE("a state that its checkpoint names and that is gone is no checkpoint without it") {
  const TempFolder folder;
  RunFolderSink sink(folder.path(), kJob, 1, std::nullopt);
  Complete(sink, 1);
  std::filesystem::remove_all(CheckpointFolder(folder.path(), 1));
  CHECK(absl::IsDataLoss(sink.ReadWorkerState(1).status()));
}

}  // namespace
}  // namespace leeway::run_folder_sink
