// Checks that the files of a job exist, before any of its processes starts.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "leeway/v1/job.pb.h"

namespace leeway {

// Returns whether the job names a file in the data folder, which is a file without an absolute path
// or location.
bool ReadsDataFolder(const v1::TrainingJob& job);

// Returns whether the job reads from an object store: the data folder is in one, or the job names a
// file by its location in one.
bool ReadsStore(const v1::TrainingJob& job, const std::string& data_dir);

// Checks that the job's data files exist. Returns NOT_FOUND, which names every missing file and, if
// known, how to fetch it. Other errors come from an object store.
absl::Status CheckDataFiles(const v1::TrainingJob& job, const std::string& data_dir);

}  // namespace leeway
