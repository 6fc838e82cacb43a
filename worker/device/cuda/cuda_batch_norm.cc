// Batch normalisation (Ioffe and Szegedy 2015, algorithm 1 and the gradients of section 3). The
// variance is computed in a second pass over the rows.
#include "worker/device/cuda/cuda_backend.h"
#include "worker/device/cuda/kernels/batch_norm.h"
#include "worker/device/cuda/launch.h"
#include "worker/device/cuda/sums.h"

namespace leeway::cuda {

void CudaBackend::BatchNormForward(const BatchNormOptions& options, const BatchNormWeights& weights,
                                   const float* x, float* saved, float* batch_mean,
                                   float* batch_var, float* y) {
  const size_t columns = options.columns;
  float* const mean = saved;
  float* const inverse = saved + columns;
  const auto rows = static_cast<double>(options.rows);
  // A batch of one row has no variance, so it leaves the running values unchanged.
  const bool keeps = options.rows == 1;
  const double unbias = keeps ? 1 : rows / (rows - 1);
  SumColumns("BatchNormForward", options.rows, columns, MatrixTerm{columns, x},
             MeanSink{rows, mean, batch_mean, keeps ? weights.running_mean : nullptr});
  SumColumns("BatchNormForward", options.rows, columns, SquaredDeviation{columns, x, mean},
             VarianceSink{rows, unbias, options.epsilon, inverse, batch_var,
                          keeps ? weights.running_var : nullptr});
  Launch(queue_, "BatchNormForward", options.rows * columns,
         Normalize{.columns = columns,
                   .gamma = weights.gamma,
                   .beta = weights.beta,
                   .mean = mean,
                   .inverse = inverse,
                   .variance = nullptr,
                   .epsilon = options.epsilon,
                   .x = x,
                   .y = y});
}

void CudaBackend::BatchNormInference(const BatchNormOptions& options,
                                     const BatchNormWeights& weights, const float* x, float* y) {
  Launch(queue_, "BatchNormInference", options.rows * options.columns,
         Normalize{.columns = options.columns,
                   .gamma = weights.gamma,
                   .beta = weights.beta,
                   .mean = weights.running_mean,
                   .inverse = nullptr,
                   .variance = weights.running_var,
                   .epsilon = options.epsilon,
                   .x = x,
                   .y = y});
}

void CudaBackend::BatchNormBackward(const BatchNormOptions& options, const float* gamma,
                                    const float* x, const float* saved, const float* dy,
                                    float* dgamma, float* dbeta, float* dx) {
  const size_t columns = options.columns;
  const float* const mean = saved;
  const float* const inverse = saved + columns;
  SumColumns("BatchNormBackward", options.rows, columns, MatrixTerm{columns, dy}, SumSink{dbeta});
  SumColumns("BatchNormBackward", options.rows, columns, NormalTerm{columns, x, mean, inverse, dy},
             SumSink{dgamma});
  if (dx == nullptr) return;
  Launch(queue_, "BatchNormBackward", options.rows * columns,
         NormalizeSlope{.columns = columns,
                        .share = 1.0f / static_cast<float>(options.rows),
                        .gamma = gamma,
                        .mean = mean,
                        .inverse = inverse,
                        .dgamma = dgamma,
                        .dbeta = dbeta,
                        .x = x,
                        .dy = dy,
                        .dx = dx});
}

}  // namespace leeway::cuda
