// How good a model is on a test set.
#pragma once

#include <span>

#include "absl/status/statusor.h"
#include "leeway/v1/coordinator.pb.h"
#include "worker/data/dataset.h"
#include "worker/model/model.h"

namespace leeway {

// Mean loss over all of `test`, and the share of right classes where labels are classes; clock and
// epoch are the caller's to fill in. `weights`: the model's whole vector.
absl::StatusOr<v1::EvaluationMetrics> Evaluate(Model& model, const Dataset& test, v1::Loss loss,
                                               std::span<const float> weights);

}  // namespace leeway
