// Pooling.
#include "worker/device/cuda/cuda_backend.h"
#include "worker/device/cuda/kernels/pool.h"
#include "worker/device/cuda/launch.h"

namespace leeway::cuda {
namespace {

float Share(const PoolShape& shape) { return 1.0f / static_cast<float>(shape.area()); }

}  // namespace

void CudaBackend::MaxPoolForward(const PoolShape& shape, size_t batch, const float* x,
                                 float* winners, float* y) {
  Launch(queue_, "MaxPoolForward", batch * shape.output().elements(),
         MaxPool{WindowShape::Of(shape), x, winners, y});
}

void CudaBackend::MaxPoolBackward(const PoolShape& shape, size_t batch, const float* winners,
                                  const float* dy, float* dx) {
  Launch(queue_, "MaxPoolBackward", batch * shape.input.elements(),
         PoolSlopes<MaxSlope>{WindowShape::Of(shape), {winners, dy}, dx});
}

void CudaBackend::AvgPoolForward(const PoolShape& shape, size_t batch, const float* x, float* y) {
  Launch(queue_, "AvgPoolForward", batch * shape.output().elements(),
         AvgPool{WindowShape::Of(shape), Share(shape), x, y});
}

void CudaBackend::AvgPoolBackward(const PoolShape& shape, size_t batch, const float* dy,
                                  float* dx) {
  Launch(queue_, "AvgPoolBackward", batch * shape.input.elements(),
         PoolSlopes<AvgSlope>{WindowShape::Of(shape), {Share(shape), dy}, dx});
}

}  // namespace leeway::cuda
