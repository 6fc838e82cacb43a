// Starts cuDNN for a device, or reports why it cannot be used.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "worker/device/cuda/convolver.h"
#include "worker/device/cuda/runtime.h"

namespace leeway::cuda {

struct StartedConvolver {
  // The convolver. Null if convolutions are products of patches.
  std::unique_ptr<Convolver> convolver;
  // A remark for the log: how convolutions are computed, and if cuDNN does not compute them, why.
  std::string remark;
};

// Starts cuDNN unless LEEWAY_CUDA_CUDNN is 0. If LEEWAY_CUDA_CUDNN is 1, cuDNN computes all
// convolutions that it can. `runtime` must outlive the convolver. Returns RESOURCE_EXHAUSTED if the
// device lacks memory for cuDNN. Any other problem with cuDNN is not an error but a remark.
absl::StatusOr<StartedConvolver> StartConvolver(Runtime& runtime);

}  // namespace leeway::cuda
