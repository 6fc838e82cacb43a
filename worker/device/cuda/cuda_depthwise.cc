// Depthwise convolution.
#include "worker/device/cuda/cuda_backend.h"
#include "worker/device/cuda/kernels/depthwise.h"
#include "worker/device/cuda/launch.h"
#include "worker/device/cuda/sums.h"

namespace leeway::cuda {

void CudaBackend::DepthwiseForward(const Conv2dShape& shape, size_t batch, const float* x,
                                   const float* weight, const float* bias, float* y) {
  Launch(queue_, "DepthwiseForward", batch * shape.output().elements(),
         DepthwiseOutput{PatchShape::Of(shape), x, weight, bias, y});
}

void CudaBackend::DepthwiseBackward(const Conv2dShape& shape, size_t batch, const float* x,
                                    const float* weight, const float* dy, float* dweight,
                                    float* dx) {
  const PatchShape patches = PatchShape::Of(shape);
  const size_t weights = size_t{shape.kernel} * shape.kernel * shape.filters;
  SumColumns("DepthwiseBackward", batch * patches.pixels(), weights, DepthwiseTerm{patches, x, dy},
             SumSink{dweight});
  if (dx == nullptr) return;
  Launch(queue_, "DepthwiseBackward", batch * shape.input.elements(),
         DepthwiseData{patches, weight, dy, dx});
}

}  // namespace leeway::cuda
