// Lists the files that a job names.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "leeway/v1/job.pb.h"

namespace leeway {

// Returns the files of one source, in the order in which they are read.
std::vector<std::string> FilesOf(const v1::Source& source);
// Returns the names of the files of all sources, each name once.
std::vector<std::string> DataFileNames(const v1::TrainingJob& job);
// Returns the names of DataFileNames, and the file of the initial weights.
std::vector<std::string> FileNames(const v1::TrainingJob& job);

// Returns INVALID_ARGUMENT, naming the file, if the job names a file by an absolute path that is
// not in `data_dir`.
absl::Status CheckInDataFolder(const v1::TrainingJob& job, const std::string& data_dir);

}  // namespace leeway
