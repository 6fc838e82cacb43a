// A model as a table, layer by layer: `leeway plan --model`.
#pragma once

#include <string>

#include "leeway/v1/job.pb.h"
#include "worker/model/model.h"

namespace leeway {

// Of the model that was built of `config`: each layer's output, its parameters, the operations of
// an example's forward pass and what it keeps of a batch of `batch` examples until the backward
// pass; and of all together, with what the backward pass takes besides.
std::string ModelTable(const v1::Model& config, const Model& model, size_t batch);

}  // namespace leeway
