// What a model is evaluated on.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "leeway/v1/job.pb.h"
#include "worker/data/dataset.h"

namespace leeway {

// The job's `test` source, or the held-out part of all files of its
// `train` source; null if it has neither. Never augmented. Errors name file and place.
absl::StatusOr<std::unique_ptr<Dataset>> OpenTestData(const v1::TrainingJob& job,
                                                      const std::string& data_dir);
// The same; INVALID_ARGUMENT unless its examples have the shape of the training data, and the same
// columns.
absl::StatusOr<std::unique_ptr<Dataset>> OpenTestDataOf(const v1::TrainingJob& job,
                                                        const std::string& data_dir,
                                                        const Dataset& trained);

}  // namespace leeway
