// The number of elements of a tensor, and the name of an element in messages.
#pragma once

#include <cstdint>
#include <string>

#include "leeway/v1/coordinator.pb.h"

namespace leeway {

// Returns the product of the tensor's dimensions, which is 1 for a scalar.
uint64_t ElementsOf(const v1::TensorSpec& tensor);

// Returns a name such as "dense_1/weight[12]", where 12 is the element's flat index in its tensor.
// Returns "element 515" if the schema has no tensor that could contain the element.
std::string ElementName(const v1::ModelSchema& schema, uint64_t element);

}  // namespace leeway
