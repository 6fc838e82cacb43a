// The GPU that the tests of this folder run on.
#pragma once

#include <memory>

#include "worker/compute/backend.h"
#include "worker/compute/precision.h"

namespace leeway::testing {

// Opens cuda:0, or the device that LEEWAY_TEST_GPU names, with the module beside the test or the
// one that LEEWAY_CUDA_MODULE names. Without a GPU it ends the test case as skipped.
std::unique_ptr<Backend> OpenGpu(Precision precision = Precision::kFp32);

}  // namespace leeway::testing
