#include "launcher/commands/run_copy.h"

#include "absl/strings/str_cat.h"
#include "common/files/files.h"
#include "common/object_store/address.h"
#include "common/status.h"
#include "common/storage/segments.h"
#include "common/storage/storage.h"
#include "server/checkpoint/checkpoint_dir.h"
#include "server/checkpoint/coordinator_record.h"
#include "server/checkpoint/manifest.h"
#include "server/outcome/run_files.h"

namespace leeway {
namespace {

absl::Status IfThere(const absl::Status& status) {
  return absl::IsNotFound(status) ? absl::OkStatus() : status;
}

absl::Status CopyManifests(const std::string& run_dir, const std::string& folder) {
  ASSIGN_OR_RETURN(const std::vector<uint64_t> clocks, CheckpointClocks(run_dir));
  for (const uint64_t clock : clocks) {
    const std::string copy = CheckpointFolder(folder, clock);
    RETURN_IF_ERROR(MakeFolders(copy));
    RETURN_IF_ERROR(
        IfThere(CopyStored(absl::StrCat(CheckpointFolder(run_dir, clock), "/", kManifestName),
                           absl::StrCat(copy, "/", kManifestName))));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckIsFolder(const std::string& location, const std::string& command,
                           const std::string& instead) {
  if (!IsObjectLocation(location)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(command, " wants a folder of this machine, not ", location, ": ", instead));
}

absl::StatusOr<std::unique_ptr<TemporaryFolder>> CopyForReport(const std::string& run_dir) {
  ASSIGN_OR_RETURN(std::unique_ptr<TemporaryFolder> folder, TemporaryFolder::Make("leeway-run"));
  RETURN_IF_ERROR(CopyStored(absl::StrCat(run_dir, "/", kJobFile),
                             absl::StrCat(folder->path(), "/", kJobFile)));
  for (const char* name : {kSummaryFile, kCoordinatorRecordName}) {
    RETURN_IF_ERROR(IfThere(
        CopyStored(absl::StrCat(run_dir, "/", name), absl::StrCat(folder->path(), "/", name))));
  }
  RETURN_IF_ERROR(IfThere(JoinSegments(absl::StrCat(run_dir, "/metrics"),
                                       absl::StrCat(folder->path(), "/", kMetricsFile))));
  RETURN_IF_ERROR(CopyManifests(run_dir, folder->path()));
  return folder;
}

}  // namespace leeway
