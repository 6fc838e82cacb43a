// Values that a model learns badly from, found out before it does.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "leeway/v1/job.pb.h"
#include "worker/data/dataset.h"

namespace leeway {

// "feature 2 ('income') of the training data has ..."; empty where a sample of the examples, as
// they are normalised, is near 0 or 1, where the model begins with a normalisation, and for tokens.
// Errors are those of reading examples.
absl::StatusOr<std::string> InputWarning(const v1::TrainingJob& job, const Dataset& data);

}  // namespace leeway
