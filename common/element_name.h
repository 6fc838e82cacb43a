// The elements of a model's tensors: their number, and the name of an element in messages.
#pragma once

#include <cstdint>
#include <string>

#include "leeway/v1/coordinator.pb.h"

namespace leeway {

// The product of the tensor's shape; 1 for a scalar.
uint64_t ElementsOf(const v1::TensorSpec& tensor);

// Returns "dense_1/weight[12]", with the element's flat index in its tensor, or "element 515" if
// the schema has no tensor that could contain it.
std::string ElementName(const v1::ModelSchema& schema, uint64_t element);

}  // namespace leeway
