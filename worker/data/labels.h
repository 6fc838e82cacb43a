// Which labels a loss takes.
#pragma once

#include "absl/status/statusor.h"
#include "leeway/v1/job.pb.h"

namespace leeway {

// The label as the loss wants it. Softmax: a class number, 0 or more. Logistic: 0 or 1, and -1
// becomes 0. Squared: any finite number. INVALID_ARGUMENT otherwise, without a place: "label 2.5:
// ...".
absl::StatusOr<float> CheckLabel(double label, v1::Loss loss);

}  // namespace leeway
