// Tells which kind of labels a model's loss needs, by naming a built-in loss that needs the same.
#pragma once

#include "leeway/v1/job.pb.h"

namespace leeway {

// Returns the model's loss if it is built in. For a plugin's loss, returns the built-in loss that
// needs the same labels: squared for numbers, softmax_cross_entropy for classes. If the plugin's
// loss does not exist, returns squared. Model::Build reports that error.
v1::Loss LabelLoss(const v1::Model& model);

}  // namespace leeway
