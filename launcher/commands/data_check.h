// Are the files of a job there, before anything is started for it?
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "leeway/v1/job.pb.h"

namespace leeway {

// The files that the job's sources name, relative to the data folder, each once.
std::vector<std::string> DataFileNames(const v1::TrainingJob& job);

// Whether anything of the job is in the data folder: examples that no generator makes, weights to
// start from, plugins.
bool ReadsFiles(const v1::TrainingJob& job);

// NOT_FOUND names every file that is absent, and what to fetch from where.
absl::Status CheckDataFiles(const v1::TrainingJob& job, const std::string& data_dir);

}  // namespace leeway
