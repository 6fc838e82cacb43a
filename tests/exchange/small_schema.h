// The schema of a model of a few elements.
#pragma once

#include <cstdint>
#include <initializer_list>

#include "leeway/v1/coordinator.pb.h"

namespace leeway::testing {

struct SmallTensor {
  const char* name;
  uint64_t size = 0;
  // If above 0, the tensor is averaged.
  double momentum = 0;
};

// Returns the schema of these tensors, one after the other. The averaged ones come last.
inline v1::ModelSchema SmallSchema(std::initializer_list<SmallTensor> tensors) {
  v1::ModelSchema schema;
  for (const SmallTensor& each : tensors) {
    v1::TensorSpec* tensor = schema.add_tensors();
    tensor->set_name(each.name);
    tensor->set_offset(schema.total());
    tensor->add_shape(each.size);
    if (each.momentum > 0) tensor->set_momentum(each.momentum);
    schema.set_total(schema.total() + each.size);
    if (each.momentum == 0) schema.set_trained(schema.total());
  }
  return schema;
}

}  // namespace leeway::testing
