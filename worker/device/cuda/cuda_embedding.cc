// Looks up rows of a table by number.
#include "worker/device/cuda/cuda_backend.h"
#include "worker/device/cuda/kernels/embedding.h"
#include "worker/device/cuda/launch.h"

namespace leeway::cuda {

void CudaBackend::EmbedForward(const EmbedShape& shape, const float* tokens, const float* weight,
                               float* y) {
  Launch(queue_, "EmbedForward", shape.count * shape.width,
         TableRows{shape.width, tokens, weight, y});
}

void CudaBackend::EmbedBackward(const EmbedShape& shape, const float* tokens, const float* dy,
                                bool accumulate, float* dweight) {
  if (!accumulate) Fill(shape.vocabulary * shape.width, 0, dweight);
  Launch(queue_, "EmbedBackward", shape.width,
         TableSlope{shape.count, shape.width, tokens, dy, dweight});
}

}  // namespace leeway::cuda
