// The backend of this target's tests of kernels, layers and models: CudaBackend on the host. In the
// environment, LEEWAY_TEST_CONVOLVER has a library compute the convolutions, and LEEWAY_TEST_STAGED
// copies the operands of each kernel, as on a GPU (gpu/staged_backend.h).
#include <cstdlib>

#include "tests/worker/device/cuda/gpu/staged_backend.h"
#include "tests/worker/device/cuda/host_runtime.h"
#include "tests/worker/device/cuda/kernel_backend.h"
#include "tests/worker/model/support.h"
#include "worker/device/cuda/cuda_backend.h"

namespace leeway::testing {
namespace {

// The counts of all backends of the program.
HostRuntimeCounts counts;

}  // namespace

std::unique_ptr<Backend> KernelBackend(bool convolver, Precision precision) {
  auto made =
      cuda::CudaBackend::Make(MakeHostRuntime({.convolver = convolver}, counts), false, precision);
  REQUIRE(made.ok());
  if (std::getenv("LEEWAY_TEST_STAGED") == nullptr) return *std::move(made);
  return MakeStagedBackend(*std::move(made));
}

std::unique_ptr<Backend> TestBackend(uint32_t, Precision precision) {
  return KernelBackend(std::getenv("LEEWAY_TEST_CONVOLVER") != nullptr, precision);
}

bool MayKeepDigits(Precision) { return false; }

}  // namespace leeway::testing
