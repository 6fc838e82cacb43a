// Finds input values from which a model would learn badly, before the training starts.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "leeway/v1/job.pb.h"
#include "worker/data/dataset.h"

namespace leeway {

// Returns a warning such as "feature 2 ('income') of the training data has ..." if the mean or
// deviation of a sample of the inputs is large after the job's normalisation. Returns an empty
// string if they are not large, if the model begins with a normalisation layer, or for tokens.
// Returns the errors of reading examples.
absl::StatusOr<std::string> InputWarning(const v1::TrainingJob& job, const Dataset& data);

}  // namespace leeway
