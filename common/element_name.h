// The elements of a model's tensors: how many there are, and how a message names one.
#pragma once

#include <cstdint>
#include <string>

#include "leeway/v1/coordinator.pb.h"

namespace leeway {

// The product of the tensor's shape; 1 for a scalar.
uint64_t ElementsOf(const v1::TensorSpec& tensor);

// "dense_1/weight[12]": the element's place in its tensor, as a flat index; "element 515" where the
// schema names no tensor that could hold it.
std::string ElementName(const v1::ModelSchema& schema, uint64_t element);

}  // namespace leeway
