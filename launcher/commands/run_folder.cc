#include "launcher/commands/run_folder.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "common/codec/choose.h"
#include "common/files/files.h"
#include "common/status.h"
#include "config/external.h"
#include "server/checkpoint/checkpoint_dir.h"
#include "server/checkpoint/coordinator_record.h"
#include "server/checkpoint/manifest.h"

namespace leeway {
namespace {

namespace fs = std::filesystem;

std::string Absolute(const std::string& path) {
  std::error_code error;
  const fs::path absolute = fs::absolute(path, error).lexically_normal();
  return error ? path : absolute.string();
}

// A run that has left nothing which somebody may want back. One without the launcher's log was
// started by hand, and may run.
absl::Status CheckUsable(const std::string& path) {
  ASSIGN_OR_RETURN(const CheckpointSearch search, FindNewestCheckpoint(path));
  std::error_code error;
  const bool empty = !search.newest.has_value() && CheckNothingLost(path, search).ok() &&
                     !fs::exists(path + "/" + kModelFile, error) &&
                     fs::exists(path + "/" + kLauncherLog, error);
  if (empty) return absl::OkStatus();
  return absl::AlreadyExistsError(absl::StrCat(
      "the run folder ", path, " holds a run already: --resume goes on with it, or name another"));
}

}  // namespace

std::string DefaultRunFolder(const std::string& name, std::time_t now) {
  std::tm local{};
  localtime_r(&now, &local);
  char time[32];
  std::strftime(time, sizeof(time), "%Y%m%d-%H%M%S", &local);
  const std::string base = absl::StrCat("runs/", name, "-", time);
  std::string path = base;
  std::error_code error;
  for (int i = 2; fs::exists(path, error); ++i) path = absl::StrCat(base, "-", i);
  return path;
}

absl::StatusOr<RunFolder> RunFolder::Create(const std::string& path) {
  std::error_code error;
  if (fs::exists(path + "/" + kJobFile, error)) {
    RETURN_IF_ERROR(CheckUsable(path));
  } else if (fs::exists(path, error) && !fs::is_empty(path, error)) {
    return absl::AlreadyExistsError(
        absl::StrCat("the run folder ", path, " is there and not empty: name another"));
  }
  RETURN_IF_ERROR(MakeFolders(path + "/logs"));
  return Lock(path);
}

std::vector<std::string> RunFolder::replaced() const {
  std::vector<std::string> names;
  std::error_code error;
  if (!fs::exists(path_ + "/" + kLauncherLog, error)) return names;
  for (const char* name : {kCoordinatorRecordName, kMetricsFile, kSummaryFile, kReportFile,
                           kCurvesFile, kCheckpointsFolder}) {
    if (fs::exists(path_ + "/" + name, error)) names.emplace_back(name);
  }
  return names;
}

absl::Status RunFolder::RemoveReplaced() const {
  for (const std::string& name : replaced()) RETURN_IF_ERROR(RemoveTree(path_ + "/" + name));
  return absl::OkStatus();
}

absl::Status RunFolder::CheckHoldsRun(const std::string& path) {
  std::error_code error;
  if (fs::exists(path + "/" + kJobFile, error)) return absl::OkStatus();
  return absl::NotFoundError(
      absl::StrCat("no run to go on with in ", path, ": it has no ", kJobFile));
}

absl::Status RunFolder::CheckIsOne(const std::string& path) {
  std::error_code error;
  bool started = false;
  for (const char* name : {kCoordinatorRecordName, kMetricsFile, kLauncherLog}) {
    started |= fs::exists(path + "/" + name, error);
  }
  if (started && fs::exists(path + "/" + kJobFile, error)) return absl::OkStatus();
  return absl::NotFoundError(
      absl::StrCat(path, " is no run's folder: it has no ", kJobFile,
                   started ? "" : absl::StrCat(" of a run, no ", kMetricsFile)));
}

absl::Status RunFolder::CheckNoResult() const {
  std::error_code error;
  if (!fs::exists(path_ + "/" + kModelFile, error)) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(
      "the run in ", path_, " has left ", kModelFile, ", and ", path_, "/", kCheckpointsFolder,
      " holds no complete checkpoint: restore one, or begin anew in another --run-dir"));
}

absl::StatusOr<RunFolder> RunFolder::Open(const std::string& path) {
  RETURN_IF_ERROR(CheckHoldsRun(path));
  RETURN_IF_ERROR(MakeFolders(path + "/logs"));
  return Lock(path);
}

absl::StatusOr<RunFolder> RunFolder::Lock(const std::string& path) {
  const std::string absolute = Absolute(path);
  ASSIGN_OR_RETURN(OpenFolder folder, OpenFolder::Open(absolute));
  if (flock(folder.number(), LOCK_EX | LOCK_NB) != 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("another launcher is running the job in ", path));
  }
  return RunFolder(absolute, std::move(folder));
}

v1::TrainingJob JobSoFar(const v1::CheckpointManifest& newest, const v1::TrainingJob& next) {
  v1::TrainingJob job = newest.job();
  // A worker has brought it, and a worker will.
  if (BringsUpdate(next)) job.clear_update();
  if (HasAuto(next.compression())) *job.mutable_compression() = next.compression();
  return job;
}

std::vector<ReportInput::Checkpoint> ListCheckpoints(const std::string& run_dir) {
  std::vector<ReportInput::Checkpoint> checkpoints;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(run_dir + "/checkpoints", error)) {
    const auto manifest = ReadManifest(entry.path().string());
    if (!manifest.ok()) continue;
    uint64_t bytes = 0;
    for (const v1::SavedShard& shard : manifest->shards()) bytes += shard.bytes();
    for (const v1::SavedWorkerState& state : manifest->worker_states())
      bytes += state.file().bytes();
    checkpoints.push_back({.clock = manifest->clock(),
                           .bytes = bytes,
                           .path = "checkpoints/" + entry.path().filename().string()});
  }
  std::sort(checkpoints.begin(), checkpoints.end(),
            [](const auto& a, const auto& b) { return a.clock < b.clock; });
  return checkpoints;
}

}  // namespace leeway
