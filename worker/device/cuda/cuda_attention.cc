// Multi-head attention: a matrix product for each head, and kernels for the rows of the attention
// weights.
#include <cmath>

#include "worker/device/cuda/cuda_backend.h"
#include "worker/device/cuda/kernels/attention.h"
#include "worker/device/cuda/launch.h"

namespace leeway::cuda {
namespace {

// The offsets of the matrices of one head of one example, in floats.
struct HeadPlace {
  HeadPlace(const AttentionShape& shape, size_t index)
      : queries(index / shape.heads * shape.positions * shape.qkv() +
                index % shape.heads * shape.width),
        keys(queries + shape.channels()),
        values(keys + shape.channels()),
        output(index / shape.heads * shape.positions * shape.channels() +
               index % shape.heads * shape.width),
        weights(index * shape.positions * shape.positions) {}

  size_t queries;
  size_t keys;
  size_t values;
  // The offset of the head in a matrix [positions x channels].
  size_t output;
  size_t weights;
};

float ScoreScale(const AttentionShape& shape) {
  return 1.0f / std::sqrt(static_cast<float>(shape.width));
}

}  // namespace

void CudaBackend::Rotate(const AttentionShape& shape, size_t batch, bool back, float* qkv) {
  const size_t vectors = 2 * shape.heads;
  Launch(queue_, "Rotate", batch * shape.positions * vectors * (shape.width / 2),
         PairTurn{shape.positions, vectors, shape.width, shape.qkv(), back, qkv});
}

void CudaBackend::AttentionScores(const AttentionShape& shape, size_t batch, const float* qkv,
                                  float* p) {
  const size_t n = shape.positions;
  for (size_t i = 0; i < batch * shape.heads; ++i) {
    const HeadPlace at(shape, i);
    Gemm({n, n, shape.width, shape.qkv(), shape.qkv(), n}, Op::kAsIs, qkv + at.queries,
         Op::kTransposed, qkv + at.keys, false, p + at.weights);
  }
  Launch(queue_, "AttentionScores", batch * shape.heads * n,
         SoftmaxRow{n, shape.causal, ScoreScale(shape), p});
}

void CudaBackend::AttentionMix(const AttentionShape& shape, size_t batch, const float* p,
                               const float* qkv, float* y) {
  const size_t n = shape.positions;
  for (size_t i = 0; i < batch * shape.heads; ++i) {
    const HeadPlace at(shape, i);
    Gemm({n, shape.width, n, n, shape.qkv(), shape.channels()}, Op::kAsIs, p + at.weights,
         Op::kAsIs, qkv + at.values, false, y + at.output);
  }
}

void CudaBackend::AttentionMixBackward(const AttentionShape& shape, size_t batch, const float* p,
                                       const float* qkv, const float* dy, float* dp, float* dqkv) {
  const size_t n = shape.positions;
  for (size_t i = 0; i < batch * shape.heads; ++i) {
    const HeadPlace at(shape, i);
    Gemm({n, n, shape.width, shape.channels(), shape.qkv(), n}, Op::kAsIs, dy + at.output,
         Op::kTransposed, qkv + at.values, false, dp + at.weights);
    Gemm({n, shape.width, n, n, shape.channels(), shape.qkv()}, Op::kTransposed, p + at.weights,
         Op::kAsIs, dy + at.output, false, dqkv + at.values);
  }
}

void CudaBackend::AttentionScoresBackward(const AttentionShape& shape, size_t batch, const float* p,
                                          const float* qkv, float* dp, float* dqkv) {
  const size_t n = shape.positions;
  Launch(queue_, "AttentionScoresBackward", batch * shape.heads * n,
         SoftmaxRowSlope{n, shape.causal, ScoreScale(shape), p, dp});
  for (size_t i = 0; i < batch * shape.heads; ++i) {
    const HeadPlace at(shape, i);
    Gemm({n, shape.width, n, n, shape.qkv(), shape.qkv()}, Op::kAsIs, dp + at.weights, Op::kAsIs,
         qkv + at.keys, false, dqkv + at.queries);
    Gemm({n, shape.width, n, n, shape.qkv(), shape.qkv()}, Op::kTransposed, dp + at.weights,
         Op::kAsIs, qkv + at.queries, false, dqkv + at.keys);
  }
}

}  // namespace leeway::cuda
