// Starts cuDNN for a device, or says why it does not.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "worker/device/cuda/convolver.h"
#include "worker/device/cuda/runtime.h"

namespace leeway::cuda {

struct StartedConvolver {
  // Null if convolutions are products of patches.
  std::unique_ptr<Convolver> convolver;
  // A remark for the log: how convolutions are computed, and why if it is not by cuDNN.
  std::string remark;
};

// Starts cuDNN unless LEEWAY_CUDA_CUDNN is 0; if it is 1, cuDNN computes all convolutions that it
// can. `runtime` must outlive the convolver. RESOURCE_EXHAUSTED: the device has no room for cuDNN.
// Any other problem of cuDNN is not an error but a remark.
absl::StatusOr<StartedConvolver> StartConvolver(Runtime& runtime);

}  // namespace leeway::cuda
