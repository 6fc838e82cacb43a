// The GPU that the tests of this folder run on.
#pragma once

#include <memory>

#include "worker/compute/backend.h"
#include "worker/compute/precision.h"

namespace leeway::testing {

// cuda:0, or what LEEWAY_TEST_GPU says, of the module beside the test or that LEEWAY_CUDA_MODULE
// names. Ends the test case as skipped where there is none.
std::unique_ptr<Backend> OpenGpu(Precision precision = Precision::kFp32);

}  // namespace leeway::testing
