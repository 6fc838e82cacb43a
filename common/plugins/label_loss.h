// The kind of labels that a model's loss takes, expressed as a built-in loss.
#pragma once

#include "leeway/v1/job.pb.h"

namespace leeway {

// Returns the model's loss. For a plugin's loss it returns the built-in one that takes the same
// labels: squared for numbers, softmax_cross_entropy for classes. A plugin's loss that does not
// exist counts as squared; Model::Build reports the error.
v1::Loss LabelLoss(const v1::Model& model);

}  // namespace leeway
