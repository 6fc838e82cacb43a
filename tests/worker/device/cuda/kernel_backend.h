// The GPU's backend whose kernels are tested.
#pragma once

#include <memory>

#include "worker/compute/backend.h"
#include "worker/compute/precision.h"

namespace leeway::testing {

// The program brings it. `convolver`: with a library for convolutions, if there is a choice.
std::unique_ptr<Backend> KernelBackend(bool convolver = false,
                                       Precision precision = Precision::kFp32);

}  // namespace leeway::testing
