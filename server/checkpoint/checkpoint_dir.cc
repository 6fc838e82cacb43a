#include "server/checkpoint/checkpoint_dir.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "common/object_store/address.h"
#include "common/status.h"
#include "common/storage/storage.h"
#include "server/checkpoint/coordinator_record.h"
#include "server/checkpoint/manifest.h"

namespace leeway {
namespace {

absl::StatusOr<v1::CheckpointManifest> ReadManifestOf(const std::string& folder, uint64_t clock) {
  ASSIGN_OR_RETURN(v1::CheckpointManifest manifest, ReadManifest(folder));
  if (manifest.clock() == clock) return manifest;
  return absl::DataLossError(
      absl::StrCat("its manifest belongs to the cut at clock ", manifest.clock()));
}

absl::StatusOr<v1::CheckpointManifest> Verify(const std::string& folder, uint64_t clock) {
  ASSIGN_OR_RETURN(v1::CheckpointManifest manifest, ReadManifestOf(folder, clock));
  RETURN_IF_ERROR(CheckFileDigests(folder, manifest));
  return manifest;
}

bool LooksComplete(const std::string& folder, uint64_t clock) {
  const absl::StatusOr<v1::CheckpointManifest> manifest = ReadManifestOf(folder, clock);
  return manifest.ok() && CheckFileSizes(folder, *manifest).ok();
}

}  // namespace

absl::Status CheckInRunFolder(const std::string& run_dir, const std::string& folder) {
  namespace fs = std::filesystem;
  // Object stores have no links.
  if (IsObjectLocation(run_dir) && absl::StartsWith(folder, run_dir + "/")) {
    return NormalLocation(folder).status();
  }
  std::error_code error;
  const fs::path root = fs::canonical(run_dir, error);
  if (error) return absl::ErrnoToStatus(error.value(), absl::StrCat("the run folder ", run_dir));
  const fs::path there = fs::weakly_canonical(folder, error);
  if (error) return absl::ErrnoToStatus(error.value(), absl::StrCat("the folder ", folder));
  const fs::path below =
      fs::path(folder).lexically_normal().lexically_relative(fs::path(run_dir).lexically_normal());
  if (there == root / below) return absl::OkStatus();
  return absl::PermissionDeniedError(absl::StrCat(
      folder, " leads to ", there.string(), ", which is outside the run folder ", root.string(),
      ", so nothing is read or written there. Only the run folder itself may be a link"));
}

absl::StatusOr<std::vector<uint64_t>> CheckpointClocks(const std::string& run_dir) {
  const std::string folder = absl::StrCat(run_dir, "/", kCheckpointsFolder);
  ASSIGN_OR_RETURN(const std::vector<std::string> names, ListStored(folder));
  std::vector<uint64_t> clocks;
  for (const std::string& name : names) {
    absl::string_view digits = name;
    uint64_t clock = 0;
    if (absl::ConsumePrefix(&digits, kCheckpointPrefix) && absl::SimpleAtoi(digits, &clock) &&
        absl::StrCat(folder, "/", name) == CheckpointFolder(run_dir, clock)) {
      clocks.push_back(clock);
    }
  }
  std::sort(clocks.begin(), clocks.end(), std::greater<>());
  return clocks;
}

absl::StatusOr<CheckpointSearch> FindNewestCheckpoint(const std::string& run_dir) {
  ASSIGN_OR_RETURN(const std::vector<uint64_t> clocks, CheckpointClocks(run_dir));
  CheckpointSearch search;
  for (uint64_t clock : clocks) {
    const std::string folder = CheckpointFolder(run_dir, clock);
    absl::StatusOr<v1::CheckpointManifest> manifest = Verify(folder, clock);
    if (manifest.ok()) {
      search.newest = {folder, *std::move(manifest)};
      break;
    }
    const absl::Status& why = manifest.status();
    // The storage does not answer, so nobody knows whether the checkpoint is complete.
    if (absl::IsUnavailable(why)) return why;
    search.warnings.push_back(absl::StrCat("checkpoint '", folder, "' is skipped: ",
                                           absl::IsNotFound(why)
                                               ? "it was never finished (no MANIFEST.json)"
                                               : std::string(why.message())));
    if (!absl::IsNotFound(why)) search.damaged.push_back(search.warnings.back());
  }
  return search;
}

absl::Status CheckNothingLost(const std::string& run_dir, const CheckpointSearch& search) {
  if (search.newest.has_value()) return absl::OkStatus();
  const auto lost = [&](const auto&... what) {
    return absl::DataLossError(
        absl::StrCat(what..., ": restore a checkpoint, or begin a new run in another --run-dir"));
  };
  if (!search.damaged.empty()) {
    return lost("the run in ", run_dir, " has checkpoints, but no checkpoint is complete");
  }
  ASSIGN_OR_RETURN(const auto record, ReadCoordinatorRecord(run_dir));
  if (!record.has_value()) return absl::OkStatus();
  // A record of version 0.1.0 contains only the outcome.
  const bool finished = record->outcome() == v1::JOB_FINISHED;
  if (!finished && !record->checkpointed()) return absl::OkStatus();
  return lost("the run in ", run_dir, finished ? " has finished" : " had a checkpoint", ", but ",
              run_dir, "/", kCheckpointsFolder, " no longer has a complete checkpoint");
}

absl::StatusOr<std::vector<uint64_t>> OldCheckpoints(const std::string& run_dir, uint64_t newest,
                                                     uint32_t keep) {
  ASSIGN_OR_RETURN(const std::vector<uint64_t> clocks, CheckpointClocks(run_dir));
  std::vector<uint64_t> old;
  uint32_t complete = 0;
  for (uint64_t clock : clocks) {
    if (clock > newest) continue;
    if (complete < std::max(keep, 1u) && LooksComplete(CheckpointFolder(run_dir, clock), clock)) {
      ++complete;
    } else if (complete > 0) {
      old.push_back(clock);
    }
  }
  return old;
}

absl::Status RemoveCheckpoint(const std::string& run_dir, uint64_t clock) {
  const std::string folder = CheckpointFolder(run_dir, clock);
  ASSIGN_OR_RETURN(Storage* const storage, StorageOf(folder));
  // The manifest is removed first, because it is the file that makes the checkpoint complete.
  RETURN_IF_ERROR(storage->RemoveFile(absl::StrCat(folder, "/", kManifestName)));
  return storage->RemoveFolder(folder);
}

}  // namespace leeway
