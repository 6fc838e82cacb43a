// Opens the examples that a model is evaluated on.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "leeway/v1/job.pb.h"
#include "worker/data/dataset.h"

namespace leeway {

// Opens the job's `test` source, or the held-out part of all files of its `train` source. Returns
// null if the job has neither. The examples are never augmented. Errors name the file and the
// place.
absl::StatusOr<std::unique_ptr<Dataset>> OpenTestData(const v1::TrainingJob& job,
                                                      const std::string& data_dir);
// Does the same as OpenTestData, but returns INVALID_ARGUMENT unless the examples have the shape
// and the columns of the training data.
absl::StatusOr<std::unique_ptr<Dataset>> OpenTestDataOf(const v1::TrainingJob& job,
                                                        const std::string& data_dir,
                                                        const Dataset& trained);

}  // namespace leeway
