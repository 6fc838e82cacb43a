// How a message names one value of the model.
#pragma once

#include <cstdint>
#include <string>

#include "leeway/v1/coordinator.pb.h"

namespace leeway {

// "dense_1/weight[12]": the element's place in its tensor, as a flat index; "element 515" where the
// schema names no tensor that could hold it.
std::string ElementName(const v1::ModelSchema& schema, uint64_t element);

}  // namespace leeway
