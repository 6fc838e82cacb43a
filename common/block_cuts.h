// The cuts for which a model's schema asks (coordinator.proto, TensorSpec.begins_block).
#pragma once

#include "common/blocks.h"
#include "leeway/v1/coordinator.pb.h"

namespace leeway {

BlockCuts BlockCutsOf(const v1::ModelSchema& schema);

}  // namespace leeway
