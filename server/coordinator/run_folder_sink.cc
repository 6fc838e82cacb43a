#include "server/coordinator/run_folder_sink.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "common/storage/storage.h"
#include "config/external.h"
#include "config/length.h"
#include "server/checkpoint/checkpoint_dir.h"
#include "server/checkpoint/coordinator_record.h"
#include "server/checkpoint/manifest.h"
#include "server/checkpoint/worker_state.h"

namespace leeway {
namespace {

class Writer final : public CheckpointSink::StateWriter {
 public:
  Writer(FolderUse::Hold hold, WorkerStateWriter file)
      : hold_(std::move(hold)), file_(std::move(file)) {}
  absl::Status Append(std::string_view data) override { return file_.Append(data); }
  absl::StatusOr<v1::SavedShard> Finish() override { return file_.Finish(); }

 private:
  const FolderUse::Hold hold_;
  WorkerStateWriter file_;
};

class Reader final : public CheckpointSink::StateReader {
 public:
  explicit Reader(WorkerStateReader file) : file_(std::move(file)) {}
  uint64_t clock() const override { return file_.id().clock; }
  uint64_t size() const override { return file_.size(); }
  absl::StatusOr<std::string> Read(size_t bytes_max) override {
    ASSIGN_OR_RETURN(std::string data, file_.Read(position_, bytes_max));
    position_ += data.size();
    return data;
  }

 private:
  WorkerStateReader file_;
  uint64_t position_ = 0;
};

// Returns the rank's state in the checkpoint. If only an external program keeps state, such as that
// of its schedulers, the state is the same on all ranks. A rank without a state of its own then
// gets the first rank's, for example in a run that continues with more workers.
const v1::SavedWorkerState* StateFor(const v1::CheckpointManifest& manifest, uint32_t rank) {
  for (const v1::SavedWorkerState& state : manifest.worker_states()) {
    if (state.rank() == rank) return &state;
  }
  const bool alike = IsExternal(manifest.job()) && !KeepsWorkerState(manifest.job());
  return alike && manifest.worker_states_size() > 0 ? &manifest.worker_states(0) : nullptr;
}

}  // namespace

RunFolderSink::RunFolderSink(std::string run_dir, uint64_t job_id, uint32_t keep,
                             std::optional<v1::CheckpointManifest> newest)
    : run_dir_(std::move(run_dir)), job_id_(job_id), keep_(keep), newest_(std::move(newest)) {}

absl::StatusOr<std::unique_ptr<CheckpointSink::StateWriter>> RunFolderSink::WriteWorkerState(
    const StateOf& state) {
  const auto& [clock, rank, incarnation, generation] = state;
  FolderUse::Hold hold = folders_.Enter(clock);
  const std::string folder = CheckpointFolder(run_dir_, clock);
  RETURN_IF_ERROR(CheckInRunFolder(run_dir_, folder));
  ASSIGN_OR_RETURN(Storage* const storage, StorageOf(folder));
  RETURN_IF_ERROR(storage->MakeFolder(folder));
  const std::string path =
      absl::StrCat(folder, "/", WorkerStateFileName(rank, incarnation, clock, generation));
  ASSIGN_OR_RETURN(WorkerStateWriter file, WorkerStateWriter::Create(path, {job_id_, clock, rank}));
  return std::make_unique<Writer>(std::move(hold), std::move(file));
}

absl::StatusOr<std::unique_ptr<CheckpointSink::StateReader>> RunFolderSink::ReadWorkerState(
    uint32_t rank) {
  ASSIGN_OR_RETURN(const StateFile state, FindWorkerState(rank));
  auto file = WorkerStateReader::Open(state.path);
  // The error must not be NOT_FOUND. NOT_FOUND would mean that the checkpoint has no state of this
  // rank, and the worker would begin afresh.
  if (absl::IsNotFound(file.status())) return absl::DataLossError(file.status().message());
  RETURN_IF_ERROR(file.status());
  return std::make_unique<Reader>(*std::move(file));
}

absl::StatusOr<RunFolderSink::StateFile> RunFolderSink::FindWorkerState(uint32_t rank) {
  MutexLock lock(mutex_);
  if (!newest_)
    return absl::NotFoundError(
        absl::StrCat("there is no checkpoint, and so no state of worker ", rank));
  const v1::SavedWorkerState* const state = StateFor(*newest_, rank);
  if (state == nullptr) {
    return absl::NotFoundError(absl::StrCat("the checkpoint has no state of worker ", rank));
  }
  // Enter() does not wait here, because the newest checkpoint is never removed.
  return StateFile{
      absl::StrCat(CheckpointFolder(run_dir_, newest_->clock()), "/", state->file().file()),
      folders_.Enter(newest_->clock())};
}

absl::Status RunFolderSink::AdoptWorkerState(uint64_t from_clock, const std::string& file,
                                             uint64_t to_clock) {
  const std::string folder = CheckpointFolder(run_dir_, to_clock);
  ASSIGN_OR_RETURN(Storage* const storage, StorageOf(folder));
  RETURN_IF_ERROR(storage->MakeFolder(folder));
  return CopyStored(absl::StrCat(CheckpointFolder(run_dir_, from_clock), "/", file),
                    absl::StrCat(folder, "/", file));
}

absl::Status RunFolderSink::WriteManifest(const v1::CheckpointManifest& manifest) {
  RETURN_IF_ERROR(SaveManifest(CheckpointFolder(run_dir_, manifest.clock()), manifest));
  MutexLock lock(mutex_);
  if (!newest_ || manifest.clock() > newest_->clock()) newest_ = manifest;
  return absl::OkStatus();
}

absl::Status RunFolderSink::RemoveOld(const std::function<std::set<uint64_t>()>& spared) {
  uint64_t newest = 0;
  {
    MutexLock lock(mutex_);
    if (!newest_) return absl::OkStatus();
    newest = newest_->clock();
  }
  ASSIGN_OR_RETURN(const std::vector<uint64_t> old, OldCheckpoints(run_dir_, newest, keep_));
  std::vector<FolderUse::Hold> claimed;
  for (const uint64_t clock : old) {
    if (auto claim = folders_.Claim(clock)) claimed.push_back(*std::move(claim));
  }
  const std::set<uint64_t> stay = spared();
  for (const FolderUse::Hold& folder : claimed) {
    if (stay.count(folder.clock()) > 0) continue;
    RETURN_IF_ERROR(RemoveCheckpoint(run_dir_, folder.clock()));
  }
  return absl::OkStatus();
}

absl::Status RunFolderSink::WriteRecord(const v1::CoordinatorRecord& record) {
  return WriteCoordinatorRecord(run_dir_, record);
}

}  // namespace leeway
