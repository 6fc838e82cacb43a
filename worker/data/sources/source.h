// Reads the files of a job's data source.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "leeway/v1/job.pb.h"
#include "worker/data/dataset.h"
#include "worker/data/examples.h"
#include "worker/data/holdout.h"

namespace leeway {

// Returns the number of files that by_file can assign. IDX images and their labels count as one
// file. The generator counts as one file, too.
size_t FileCount(const v1::Source& source);

// Reads `part` of the files whose index `wants_file` accepts, in order. Other files are not opened.
// The seed, the loss and the normalisation are the job's. Errors are at the key of `source`, which
// is data.train or data.test of `job`, and name the file and the place in it.
absl::StatusOr<std::unique_ptr<Dataset>> ReadSource(const v1::TrainingJob& job,
                                                    const v1::Source& source,
                                                    const std::string& data_dir, Part part,
                                                    const std::function<bool(size_t)>& wants_file);

// Reads all examples of a source that is kept in memory, as they are in its files, with labels that
// the job's loss accepts. Returns INVALID_ARGUMENT for a text or a folder of pictures, and
// otherwise the errors of ReadSource.
absl::StatusOr<Examples> ReadExamples(const v1::TrainingJob& job, const v1::Source& source,
                                      const std::string& data_dir);

}  // namespace leeway
