#include "run/run_folder.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>

#include "absl/strings/str_cat.h"
#include "common/codec/choose.h"
#include "common/files/files.h"
#include "common/object_store/address.h"
#include "common/status.h"
#include "common/storage/storage.h"
#include "common/utf8.h"
#include "config/external.h"
#include "server/checkpoint/checkpoint_dir.h"
#include "server/checkpoint/coordinator_record.h"
#include "server/checkpoint/manifest.h"

namespace leeway {
namespace {

namespace fs = std::filesystem;

using Names = std::vector<std::string>;

// The folder on this machine for runs in object stores, below the current folder.
constexpr char kFolderOfStores[] = "runs/s3/";

std::string AbsolutePath(const std::string& path) {
  std::error_code error;
  const fs::path absolute = fs::absolute(path, error).lexically_normal();
  return error ? path : absolute.string();
}

bool Has(const Names& names, const char* name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool LauncherWas(const std::string& here) {
  std::error_code error;
  return fs::exists(absl::StrCat(here, "/", kLauncherLog), error);
}

absl::Status CheckHolds(const std::string& location, const Names& names) {
  if (Has(names, kJobFile)) return absl::OkStatus();
  return absl::NotFoundError(
      absl::StrCat("there is no run to continue in ", location, ": the folder has no ", kJobFile));
}

// Returns ALREADY_EXISTS unless the run there can be replaced. A run can be replaced if it has no
// checkpoint and no model, and a launcher on this machine has run it. Without a launcher's log, a
// person started the run by hand or on another machine, so it may still be running.
absl::Status CheckUsable(const RunPlace& place, const Names& names) {
  ASSIGN_OR_RETURN(const CheckpointSearch search, FindNewestCheckpoint(place.location));
  const bool empty = !search.newest.has_value() && CheckNothingLost(place.location, search).ok() &&
                     !Has(names, kModelFile) && LauncherWas(place.here);
  if (empty) return absl::OkStatus();
  return absl::AlreadyExistsError(
      absl::StrCat("the run folder ", place.location,
                   " already has a run: continue the run with --resume, or name another folder"));
}

absl::Status AnotherRuns(const RunPlace& place) {
  return absl::AbortedError(absl::StrCat("another launcher is running the job in ", place.here));
}

absl::Status CheckFree(const RunPlace& place) {
  ASSIGN_OR_RETURN(const Names names, ListStored(place.location));
  if (names.empty()) return absl::OkStatus();
  if (Has(names, kJobFile)) return CheckUsable(place, names);
  return absl::AlreadyExistsError(absl::StrCat(
      "the run folder ", place.location, " already exists and is not empty: name another folder"));
}

}  // namespace

absl::StatusOr<RunPlace> PlaceOfRun(const std::string& run_dir, const std::string& local_dir) {
  if (!IsObjectLocation(run_dir)) {
    const std::string folder = AbsolutePath(run_dir);
    RETURN_IF_ERROR(CheckPathIsUtf8(folder));
    if (local_dir.empty()) return RunPlace{folder, folder};
    return absl::InvalidArgumentError(
        absl::StrCat("--local-dir ", local_dir,
                     ": only a run in an object store has a local folder; the logs of this run go "
                     "into its run folder. Leave --local-dir out"));
  }
  ASSIGN_OR_RETURN(const ObjectLocation parsed, ParseObjectLocation(run_dir));
  const std::string by_default =
      absl::StrCat(kFolderOfStores, parsed.bucket, parsed.key.empty() ? "" : "/", parsed.key);
  return RunPlace{LocationText(parsed.bucket, parsed.key),
                  AbsolutePath(local_dir.empty() ? by_default : local_dir)};
}

absl::Status CheckStore(const RunPlace& place) {
  if (!place.in_store()) return absl::OkStatus();
  ASSIGN_OR_RETURN(Storage* const storage, StorageOf(place.location));
  return storage->Prepare(place.location);
}

const char* MetricsName(const std::string& location) {
  return IsObjectLocation(location) ? kMetricsFolder : kMetricsFile;
}

std::string DefaultRunFolder(const std::string& name, std::time_t now) {
  std::tm local{};
  localtime_r(&now, &local);
  char time[32];
  std::strftime(time, sizeof(time), "%Y%m%d-%H%M%S", &local);
  const std::string base = absl::StrCat(kRunsFolder, "/", name, "-", time);
  std::string path = base;
  std::error_code error;
  for (int i = 2; fs::exists(path, error); ++i) path = absl::StrCat(base, "-", i);
  return path;
}

bool HasLauncher(const std::string& here) {
  const auto folder = OpenFolder::Open(here);
  if (!folder.ok()) return true;
  if (flock(folder->number(), LOCK_SH | LOCK_NB) != 0) return true;
  flock(folder->number(), LOCK_UN);
  return false;
}

absl::StatusOr<RunFolder> RunFolder::Create(const RunPlace& place) {
  const absl::Status free = CheckFree(place);
  const bool holds_one = absl::IsAlreadyExists(free) && !place.in_store();
  if (holds_one && HasLauncher(place.here)) return AnotherRuns(place);
  RETURN_IF_ERROR(free);
  return Take(place);
}

absl::StatusOr<RunFolder> RunFolder::Open(const RunPlace& place) {
  RETURN_IF_ERROR(CheckHoldsRun(place.location));
  return Take(place);
}

absl::StatusOr<RunFolder> RunFolder::Take(const RunPlace& place) {
  RETURN_IF_ERROR(MakeFolders(absl::StrCat(place.here, "/", kLogsFolder)));
  ASSIGN_OR_RETURN(OpenFolder folder, OpenFolder::Open(place.here));
  if (flock(folder.number(), LOCK_EX | LOCK_NB) == 0) return RunFolder(place, std::move(folder));
  if (errno == EWOULDBLOCK) return AnotherRuns(place);
  // A file system without locks is accepted with a warning, for example NFS without its lock
  // daemon.
  if (errno != ENOLCK && errno != ENOSYS && errno != EOPNOTSUPP) {
    return absl::ErrnoToStatus(errno, absl::StrCat("flock of '", place.here, "'"));
  }
  std::cerr << "leeway: flock of '" << place.here << "': " << strerror(errno)
            << "; so nothing prevents a second launcher from using this run folder\n";
  return RunFolder(place, std::move(folder));
}

absl::Status RunFolder::CheckHoldsRun(const std::string& location) {
  ASSIGN_OR_RETURN(const Names names, ListStored(location));
  return CheckHolds(location, names);
}

absl::Status RunFolder::CheckIsOne(const std::string& location) {
  ASSIGN_OR_RETURN(const Names names, ListStored(location));
  bool started = false;
  for (const char* name : {kCoordinatorRecordName, MetricsName(location), kLauncherLog}) {
    started |= Has(names, name);
  }
  if (started && Has(names, kJobFile)) return absl::OkStatus();
  return absl::NotFoundError(absl::StrCat(location, " is not a run's folder: it has no ",
                                          Has(names, kJobFile) ? MetricsName(location) : kJobFile));
}

absl::Status RunFolder::CheckNoResult() const {
  ASSIGN_OR_RETURN(const Names names, ListStored(location()));
  if (!Has(names, kModelFile)) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("the run in ", location(), " left ", kModelFile, ", but ",
                                          Lasting(kCheckpointsFolder),
                                          " has no complete checkpoint: restore a checkpoint, or "
                                          "begin a new run in another --run-dir"));
}

absl::StatusOr<Names> RunFolder::Replaced() const {
  Names replaced;
  if (!place_.in_store() && !WasHere()) return replaced;
  ASSIGN_OR_RETURN(const Names names, ListStored(location()));
  for (const char* name : {kCoordinatorRecordName, MetricsName(location()), kSummaryFile,
                           kReportFile, kCurvesFile, kCheckpointsFolder}) {
    if (Has(names, name)) replaced.emplace_back(name);
  }
  return replaced;
}

absl::Status RunFolder::Remove(const Names& names) const {
  ASSIGN_OR_RETURN(Storage* const storage, StorageOf(location()));
  for (const std::string& name : names) {
    RETURN_IF_ERROR(storage->RemoveFile(Lasting(name)));
    RETURN_IF_ERROR(storage->RemoveFolder(Lasting(name)));
  }
  return absl::OkStatus();
}

bool RunFolder::WasHere() const { return LauncherWas(place_.here); }

absl::Status RunFolder::CheckThere() const {
  return place_.in_store() ? absl::OkStatus() : folder_.CheckThere();
}

absl::StatusOr<PlacedJob> LoadStoredJob(const std::string& location,
                                        const JobOverrides& overrides) {
  if (!IsObjectLocation(location)) return LoadPlacedJob(location, overrides);
  ASSIGN_OR_RETURN(const std::string text, ReadStored(location, kYamlBytesMax));
  return ParsePlacedJob(text, location, overrides);
}

v1::TrainingJob JobSoFar(const v1::CheckpointManifest& newest, const v1::TrainingJob& next) {
  v1::TrainingJob job = newest.job();
  // A worker has supplied the update rule, and a worker will supply the rule again.
  if (BringsUpdate(next)) job.clear_update();
  if (HasAuto(next.compression())) *job.mutable_compression() = next.compression();
  return job;
}

std::vector<RunFolder::Checkpoint> ListCheckpoints(const std::string& run_dir) {
  std::vector<RunFolder::Checkpoint> checkpoints;
  const auto clocks = CheckpointClocks(run_dir);
  if (!clocks.ok()) return checkpoints;
  for (const uint64_t clock : *clocks) {
    const std::string folder = CheckpointFolder(run_dir, clock);
    const auto manifest = ReadManifest(folder);
    if (!manifest.ok()) continue;
    uint64_t bytes = 0;
    for (const v1::SavedShard& shard : manifest->shards()) bytes += shard.bytes();
    for (const v1::SavedWorkerState& state : manifest->worker_states())
      bytes += state.file().bytes();
    checkpoints.push_back(
        {.clock = manifest->clock(), .bytes = bytes, .path = folder.substr(run_dir.size() + 1)});
  }
  std::reverse(checkpoints.begin(), checkpoints.end());
  return checkpoints;
}

}  // namespace leeway
