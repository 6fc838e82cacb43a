// Describes a model as a table with a row for each layer, for `leeway plan --model`.
#pragma once

#include <string>

#include "leeway/v1/job.pb.h"
#include "worker/model/model.h"

namespace leeway {

// Returns a table of the layers of `model`, which was built from `config`. Its columns are a
// layer's output, its parameters, the operations of an example's forward pass, and the memory that
// the layer keeps until the backward pass for a batch of `batch` examples. The totals include the
// memory that the backward pass needs in addition.
std::string ModelTable(const v1::Model& config, const Model& model, size_t batch);

}  // namespace leeway
