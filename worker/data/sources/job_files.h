// The files that a job names.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "leeway/v1/job.pb.h"

namespace leeway {

// Those of one source, in the order in which they are read.
std::vector<std::string> FilesOf(const v1::Source& source);
// Those of the sources, as they are named, each once.
std::vector<std::string> DataFileNames(const v1::TrainingJob& job);
// Also the weights that it starts from.
std::vector<std::string> FileNames(const v1::TrainingJob& job);

// INVALID_ARGUMENT names a file with an absolute path that is not in `data_dir`.
absl::Status CheckInDataFolder(const v1::TrainingJob& job, const std::string& data_dir);

}  // namespace leeway
