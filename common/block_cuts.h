// Reads from a model's schema where blocks must begin (coordinator.proto, TensorSpec.begins_block).
#pragma once

#include "common/blocks.h"
#include "leeway/v1/coordinator.pb.h"

namespace leeway {

BlockCuts BlockCutsOf(const v1::ModelSchema& schema);

}  // namespace leeway
