#include "server/node/run_start.h"

#include <chrono>
#include <utility>

#include <spdlog/spdlog.h>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "common/storage/storage.h"
#include "config/job.h"
#include "run/history.h"
#include "run/run_folder.h"
#include "server/checkpoint/checkpoint_dir.h"
#include "server/checkpoint/manifest.h"

namespace leeway {

absl::Status KeepJobFile(const std::string& run_dir, const v1::TrainingJob& job) {
  const std::string path = run_dir + "/job.yaml";
  ASSIGN_OR_RETURN(Storage* const storage, StorageOf(path));
  const absl::Status there = storage->SizeOf(path).status();
  return absl::IsNotFound(there) ? WriteStored(path, ToYaml(job)) : there;
}

absl::StatusOr<std::optional<CoordinatorOptions::Resumed>> NewestCheckpoint(
    const std::string& run_dir) {
  ASSIGN_OR_RETURN(CheckpointSearch search, FindNewestCheckpoint(run_dir));
  for (const std::string& warning : search.warnings) spdlog::warn("{}", warning);
  RETURN_IF_ERROR(CheckNothingLost(run_dir, search));
  if (!search.newest.has_value()) return std::nullopt;
  return CoordinatorOptions::Resumed{std::move(search.newest->manifest),
                                     std::move(search.newest->folder)};
}

absl::StatusOr<CoordinatorOptions::Resumed> FindCheckpoint(const std::string& run_dir,
                                                           const v1::TrainingJob& job) {
  ASSIGN_OR_RETURN(auto newest, NewestCheckpoint(run_dir));
  if (!newest.has_value()) {
    return absl::NotFoundError(
        absl::StrCat("--resume: ", run_dir, "/checkpoints has no complete checkpoint"));
  }
  RETURN_IF_ERROR(Annotate(CheckGoesOn(newest->manifest, job), "--resume"));
  spdlog::info("the job continues from {}", newest->folder);
  return *std::move(newest);
}

uint64_t IncarnationsBefore(const std::optional<v1::CoordinatorRecord>& record) {
  if (record && record->has_incarnations()) return record->incarnations();
  // Version 0.1.0 did not record incarnations, but took them from the wall clock.
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

bool MayGoOn(const v1::CoordinatorRecord& record) {
  const bool failed = record.outcome() == v1::JOB_FAILED && !record.permanent();
  return record.checkpointed() && (failed || record.outcome() == v1::JOB_STOPPED);
}

absl::Status CheckFresh(const std::string& run_dir) {
  ASSIGN_OR_RETURN(const auto newest, NewestCheckpoint(run_dir));
  if (!newest.has_value()) return absl::OkStatus();
  return absl::AlreadyExistsError(absl::StrCat("--run-dir ", run_dir,
                                               " already has the checkpoint ", newest->folder,
                                               ": use --resume to continue from it"));
}

std::vector<v1::EvaluationMetrics> EvaluationsBefore(const std::string& run_dir) {
  const RunHistory history = ReadWithAllEvaluations(absl::StrCat(run_dir, "/", kMetricsFile));
  if (const std::string gaps = history.Gaps(); !gaps.empty()) {
    spdlog::warn("{}: {}; early_stop uses the evaluations that are left", history.file.name, gaps);
  }
  return history.evaluations;
}

}  // namespace leeway
