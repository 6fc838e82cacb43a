// Are the files of a job there, before anything is started for it?
#pragma once

#include <string>

#include "absl/status/status.h"
#include "leeway/v1/job.pb.h"

namespace leeway {

// Whether anything of the job is in the data folder: a file that is not named by an absolute path
// or location.
bool ReadsDataFolder(const v1::TrainingJob& job);

// Whether anything of the job is in an object store: all of the data folder, or a file by its
// location.
bool ReadsStore(const v1::TrainingJob& job, const std::string& data_dir);

// NOT_FOUND names every file that is absent, and what to fetch from where; other errors are an
// object store's.
absl::Status CheckDataFiles(const v1::TrainingJob& job, const std::string& data_dir);

}  // namespace leeway
