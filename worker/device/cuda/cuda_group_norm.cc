// Group normalisation (Wu and He 2018). The variance is computed in a second pass over the values.
#include "worker/device/cuda/cuda_backend.h"
#include "worker/device/cuda/kernels/group_norm.h"
#include "worker/device/cuda/launch.h"
#include "worker/device/cuda/sums.h"

namespace leeway::cuda {

void CudaBackend::GroupNormForward(const GroupNormShape& shape, const float* gamma,
                                   const float* beta, const float* x, float* saved, float* y) {
  const GroupPlaces places = GroupPlaces::Of(shape);
  const auto count = static_cast<double>(shape.values());
  float* const means = saved;
  float* const inverses = saved + shape.means();
  SumColumns("GroupNormForward", shape.values(), shape.means(), GroupValue{places, x},
             ShareSink{count, means});
  SumColumns("GroupNormForward", shape.values(), shape.means(),
             GroupSquaredDeviation{places, x, means}, InverseSink{count, shape.epsilon, inverses});
  Launch(queue_, "GroupNormForward", shape.batch * shape.pixels * shape.channels,
         GroupNormalize{places, gamma, beta, means, inverses, x, y});
}

void CudaBackend::GroupNormBackward(const GroupNormShape& shape, const float* gamma, const float* x,
                                    const float* saved, const float* dy, float* scratch,
                                    float* dgamma, float* dbeta, float* dx) {
  const GroupPlaces places = GroupPlaces::Of(shape);
  const float* const means = saved;
  const float* const inverses = saved + shape.means();
  const size_t rows = shape.batch * shape.pixels;
  SumColumns("GroupNormBackward", rows, shape.channels,
             GroupNormalTerm{places, means, inverses, x, dy}, SumSink{dgamma});
  if (dbeta != nullptr) {
    SumColumns("GroupNormBackward", rows, shape.channels, MatrixTerm{shape.channels, dy},
               SumSink{dbeta});
  }
  if (dx == nullptr) return;
  const auto count = static_cast<double>(shape.values());
  float* const slopes = scratch;
  float* const alongs = scratch + shape.means();
  SumColumns("GroupNormBackward", shape.values(), shape.means(),
             GroupSlopeTerm{places, false, gamma, means, inverses, x, dy},
             ShareSink{count, slopes});
  SumColumns("GroupNormBackward", shape.values(), shape.means(),
             GroupSlopeTerm{places, true, gamma, means, inverses, x, dy}, ShareSink{count, alongs});
  Launch(queue_, "GroupNormBackward", rows * shape.channels,
         GroupNormSlope{places, gamma, means, inverses, slopes, alongs, x, dy, dx});
}

}  // namespace leeway::cuda
