// Are the files of a job there, before anything is started for it?
#pragma once

#include <string>

#include "absl/status/status.h"
#include "leeway/v1/job.pb.h"

namespace leeway {

// Whether anything of the job is in the data folder: a file that is not named by an absolute path.
bool ReadsDataFolder(const v1::TrainingJob& job);

// NOT_FOUND names every file that is absent, and what to fetch from where.
absl::Status CheckDataFiles(const v1::TrainingJob& job, const std::string& data_dir);

}  // namespace leeway
