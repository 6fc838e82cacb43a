// Measures a model on a test set.
#pragma once

#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "leeway/v1/coordinator.pb.h"
#include "worker/data/dataset.h"
#include "worker/model/model.h"

namespace leeway {

// Returns the mean loss over all of `test`, and the share of correct classes if labels are classes.
// The caller sets the clock and the epoch of the result. `weights` is the model's whole vector.
// Appends all labels of `test` to `labels`, unless that is null.
absl::StatusOr<v1::EvaluationMetrics> Evaluate(Model& model, const Dataset& test, v1::Loss loss,
                                               std::span<const float> weights,
                                               std::vector<float>* labels = nullptr);

}  // namespace leeway
