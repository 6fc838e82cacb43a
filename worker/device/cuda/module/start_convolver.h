// cuDNN for a device, or why not.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "worker/device/cuda/convolver.h"
#include "worker/device/cuda/runtime.h"

namespace leeway::cuda {

struct StartedConvolver {
  // Null: convolutions are products of patches.
  std::unique_ptr<Convolver> convolver;
  // For the log: what convolutions are computed by, and if not by cuDNN, why.
  std::string remark;
};

// LEEWAY_CUDA_CUDNN: 0 turns cuDNN off, 1 has it compute all that it can. `runtime` outlives the
// convolver. RESOURCE_EXHAUSTED: the device has no room for cuDNN; anything else that keeps cuDNN
// from working is a remark.
absl::StatusOr<StartedConvolver> StartConvolver(Runtime& runtime);

}  // namespace leeway::cuda
