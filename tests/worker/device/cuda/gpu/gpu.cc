#include "tests/worker/device/cuda/gpu/gpu.h"

#include <cstdlib>
#include <string>

#include "tests/skip.h"
#include "tests/worker/device/cuda/gpu/staged_backend.h"
#include "tests/worker/device/cuda/kernel_backend.h"
#include "tests/worker/model/support.h"
#include "worker/device/make_backend.h"

namespace leeway::testing {

std::unique_ptr<Backend> OpenGpu(Precision precision) {
  v1::Workers workers;
  workers.set_precision(static_cast<v1::Precision>(precision));
  const char* const wanted = std::getenv("LEEWAY_TEST_GPU");
  workers.set_device(wanted == nullptr ? "cuda:0" : wanted);
  DeviceSources sources;
  if (std::getenv("LEEWAY_CUDA_MODULE") == nullptr) {
    sources.modules = {LEEWAY_MODULES "/libleeway-cuda.so"};
  }
  auto chosen = ChooseBackend(workers, 0, sources);
  // The test is skipped only if there is no GPU. A GPU that cannot be opened is a failure.
  const bool absent =
      absl::IsFailedPrecondition(chosen.status()) || absl::IsNotFound(chosen.status());
  if (absent) SKIP(std::string(chosen.status().message()));
  INFO(chosen.status());
  REQUIRE(chosen.ok());
  return std::move(chosen->backend);
}

std::unique_ptr<Backend> KernelBackend(bool, Precision precision) {
  return MakeStagedBackend(OpenGpu(precision));
}

std::unique_ptr<Backend> TestBackend(uint32_t, Precision precision) {
  return MakeStagedBackend(OpenGpu(precision));
}

bool MayKeepDigits(Precision precision) { return precision == Precision::kTf32; }

}  // namespace leeway::testing
