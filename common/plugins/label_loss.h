// Which labels a model's loss takes, in the words of the built-in losses.
#pragma once

#include "leeway/v1/job.pb.h"

namespace leeway {

// The model's loss, or for a plugin's the built-in one that takes the same labels: squared for
// numbers, softmax_cross_entropy for classes. A plugin's that cannot be found counts as squared:
// Model::Build says what is wrong with it.
v1::Loss LabelLoss(const v1::Model& model);

}  // namespace leeway
