// Finds the folder of a job's data files, and checks that the files exist, before any of the job's
// processes starts.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "leeway/v1/job.pb.h"

namespace leeway {

// Returns whether the job names a file in the data folder, which is a file without an absolute path
// or location.
bool ReadsDataFolder(const v1::TrainingJob& job);

// Returns whether the job reads from an object store: the data folder is in one, or the job names a
// file by its location in one.
bool ReadsStore(const v1::TrainingJob& job, const std::string& data_dir);

// Returns the data folder as an absolute path or an s3:// location: `option` (--data), else
// LEEWAY_DATA. Without both, returns the first folder that exists of ./data, `data` beside the job
// file, `data` beside the job file's folder, and the installed data folder. If none exists and the
// job reads no files in it, returns the current folder. Otherwise returns NOT_FOUND, which names
// the folders that were tried.
absl::StatusOr<std::string> FindDataFolder(const std::string& option, const std::string& job_file,
                                           const v1::TrainingJob& job);

// Checks that the job's data files exist. Returns NOT_FOUND, which names every missing file and, if
// known, how to fetch it. Other errors come from an object store.
absl::Status CheckDataFiles(const v1::TrainingJob& job, const std::string& data_dir);

}  // namespace leeway
