// Finds the folder of a job's data files, and checks that the files exist, before any of the job's
// processes starts.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "leeway/v1/job.pb.h"

namespace leeway {

// Returns whether the job names a file in the data folder. A file is in the data folder if its name
// is neither an absolute path nor a location.
bool ReadsDataFolder(const v1::TrainingJob& job);

// Returns whether the job reads from an object store, because the data folder or a file that the
// job names is in a store.
bool ReadsStore(const v1::TrainingJob& job, const std::string& data_dir);

// Returns the data folder as an absolute path or an s3:// location. It is `option` (--data),
// otherwise LEEWAY_DATA. If neither is set, it is the first of these folders that exists: ./data,
// `data` beside the job file, `data` beside the job file's folder, and the installed data folder.
// If none of them exists, returns NOT_FOUND, which names these folders. If the job needs no data
// folder, returns the current folder instead.
absl::StatusOr<std::string> FindDataFolder(const std::string& option, const std::string& job_file,
                                           const v1::TrainingJob& job);

// Checks that the job's data files exist. Returns NOT_FOUND, which names every missing file and, if
// known, how to fetch it. Other errors come from an object store.
absl::Status CheckDataFiles(const v1::TrainingJob& job, const std::string& data_dir);

}  // namespace leeway
