// A copy of a run that lies in an object store, as the commands need it that read folders.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/files/temporary_folder.h"

namespace leeway {

// INVALID_ARGUMENT if `location` is s3://...: `command` wants a folder of this machine, and what to
// do instead.
absl::Status CheckIsFolder(const std::string& location, const std::string& command,
                           const std::string& instead);

// All that a report is made of: the job, metrics, summary, record and the manifests of checkpoints;
// not their values. NOT_FOUND if no run is there. Gone with what is returned.
absl::StatusOr<std::unique_ptr<TemporaryFolder>> CopyForReport(const std::string& run_dir);

}  // namespace leeway
