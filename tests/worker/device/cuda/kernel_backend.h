// The GPU backend whose kernels are tested.
#pragma once

#include <memory>

#include "worker/compute/backend.h"
#include "worker/compute/precision.h"

namespace leeway::testing {

// Each test program defines it. `convolver`: with a library for convolutions, where the program has
// the choice.
std::unique_ptr<Backend> KernelBackend(bool convolver = false,
                                       Precision precision = Precision::kFp32);

}  // namespace leeway::testing
