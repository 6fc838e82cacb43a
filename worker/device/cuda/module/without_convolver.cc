// StartConvolver for a module that was built without cuDNN's headers.
#include "worker/device/cuda/module/start_convolver.h"

namespace leeway::cuda {

absl::StatusOr<StartedConvolver> StartConvolver(Runtime&) {
  return StartedConvolver{
      nullptr, "convolution by products of patches: this module was built without cuDNN"};
}

}  // namespace leeway::cuda
