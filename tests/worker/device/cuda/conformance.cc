// The backend of this target's tests of kernels, layers and models: CudaBackend over the host.
#include "tests/worker/device/cuda/host_runtime.h"
#include "tests/worker/model/support.h"
#include "worker/device/cuda/cuda_backend.h"

namespace leeway::testing {

std::unique_ptr<Backend> TestBackend(uint32_t, Precision precision) {
  static HostRuntimeCounts counts;
  auto backend = cuda::CudaBackend::Make(MakeHostRuntime({}, counts), false, precision);
  REQUIRE(backend.ok());
  return *std::move(backend);
}

}  // namespace leeway::testing
