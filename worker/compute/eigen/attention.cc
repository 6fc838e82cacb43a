// Multi-head attention. It computes one head of one example at a time, so that the head's matrices
// fit into the caches.
#include <algorithm>
#include <cmath>
#include <vector>

#include "worker/compute/eigen/eigen_backend.h"
#include "worker/compute/eigen/gemm.h"
#include "worker/compute/eigen/softmax.h"

namespace leeway {
namespace {

// A matrix whose rows are `stride` floats apart. It is writable unless T is const.
template <typename T>
struct Rows {
  T* data;
  size_t stride;
};

// The matrices of one head of one example.
class Head {
 public:
  Head(const AttentionShape& shape, size_t index)
      : shape_(shape), example_(index / shape.heads), head_(index % shape.heads) {}

  // Returns the queries (`part` 0), keys (1) or values (2) in qkv.
  template <typename T>
  Rows<T> Of(T* qkv, size_t part) const {
    return {qkv + example_ * shape_.positions * shape_.qkv() + part * shape_.channels() +
                head_ * shape_.width,
            shape_.qkv()};
  }
  // Returns the head's part of y, which is [positions x channels] for each example.
  template <typename T>
  Rows<T> Output(T* y) const {
    return {y + example_ * shape_.positions * shape_.channels() + head_ * shape_.width,
            shape_.channels()};
  }
  template <typename T>
  Rows<T> Weights(T* p) const {
    return {p + example_ * shape_.weights() + head_ * shape_.positions * shape_.positions,
            shape_.positions};
  }

 private:
  const AttentionShape& shape_;
  const size_t example_;
  const size_t head_;
};

float ScoreScale(const AttentionShape& shape) {
  return 1.0f / std::sqrt(static_cast<float>(shape.width));
}

// Computes dscores = p (dp - <dp, p>) scale in place of dp. Sets the scores of positions that are
// not seen to 0.
void SoftmaxSlope(size_t seen, size_t count, float scale, const float* p, float* dp) {
  double along = 0;
  for (size_t j = 0; j < seen; ++j) along += static_cast<double>(dp[j]) * p[j];
  const auto mean = static_cast<float>(along);
  for (size_t j = 0; j < seen; ++j) dp[j] = p[j] * (dp[j] - mean) * scale;
  std::fill(dp + seen, dp + count, 0.0f);
}

}  // namespace

template <typename Body>
void EigenBackend::ForHeads(const AttentionShape& shape, size_t batch, Body body) {
  const size_t heads = batch * shape.heads;
  // All heads share the memory for rounded factors.
  if (precision_ != Precision::kFp32) {
    for (size_t i = 0; i < heads; ++i) body(i);
    return;
  }
  pool_.For(heads, 1, [&](size_t begin, size_t end, uint32_t) {
    for (size_t i = begin; i < end; ++i) body(i);
  });
}

void EigenBackend::HeadGemm(const GemmShape& shape, Op op_a, const float* a, Op op_b,
                            const float* b, float* c) {
  MatrixRef left{a, shape.a_stride, op_a};
  MatrixRef right{b, shape.b_stride, op_b};
  const bool ta = op_a == Op::kTransposed;
  const bool tb = op_b == Op::kTransposed;
  RoundFactor(Factor::kFirst, ta ? shape.k : shape.m, ta ? shape.m : shape.k, left);
  RoundFactor(Factor::kSecond, tb ? shape.n : shape.k, tb ? shape.k : shape.n, right);
  for (size_t i = 0; i < shape.m; ++i) std::fill_n(c + i * shape.c_stride, shape.n, 0.0f);
  GemmAdd(shape, left, right, c, shape.c_stride);
}

void EigenBackend::Rotate(const AttentionShape& shape, size_t batch, bool back, float* qkv) {
  const size_t half = shape.width / 2;
  pool_.For(shape.positions, 1, [=](size_t begin, size_t end, uint32_t) {
    std::vector<float> cosines(half), sines(half);
    for (size_t t = begin; t < end; ++t) {
      for (size_t i = 0; i < half; ++i) {
        const double angle = RotaryAngle(t, i, shape.width);
        cosines[i] = static_cast<float>(std::cos(angle));
        sines[i] = static_cast<float>(back ? -std::sin(angle) : std::sin(angle));
      }
      // The heads of queries and keys are adjacent, so one loop rotates both.
      for (size_t vector = 0; vector < batch * 2 * shape.heads; ++vector) {
        const size_t row = vector / (2 * shape.heads) * shape.positions + t;
        float* x = qkv + row * shape.qkv() + vector % (2 * shape.heads) * shape.width;
        for (size_t i = 0; i < half; ++i) {
          const float a = x[i];
          const float b = x[i + half];
          x[i] = a * cosines[i] - b * sines[i];
          x[i + half] = b * cosines[i] + a * sines[i];
        }
      }
    }
  });
}

void EigenBackend::AttentionScores(const AttentionShape& shape, size_t batch, const float* qkv,
                                   float* p) {
  const size_t n = shape.positions;
  ForHeads(shape, batch, [&](size_t index) {
    const Head head(shape, index);
    const Rows q = head.Of(qkv, 0);
    const Rows k = head.Of(qkv, 1);
    const Rows scores = head.Weights(p);
    HeadGemm({n, n, shape.width, q.stride, k.stride, n}, Op::kAsIs, q.data, Op::kTransposed, k.data,
             scores.data);
    for (size_t i = 0; i < n; ++i) {
      float* row = scores.data + i * n;
      const size_t seen = shape.seen(i);
      const auto share = static_cast<float>(1 / ExpRow(seen, ScoreScale(shape), row, row));
      for (size_t j = 0; j < seen; ++j) row[j] *= share;
      std::fill(row + seen, row + n, 0.0f);
    }
  });
}

void EigenBackend::AttentionMix(const AttentionShape& shape, size_t batch, const float* p,
                                const float* qkv, float* y) {
  const size_t n = shape.positions;
  ForHeads(shape, batch, [&](size_t index) {
    const Head head(shape, index);
    const Rows v = head.Of(qkv, 2);
    const Rows out = head.Output(y);
    HeadGemm({n, shape.width, n, n, v.stride, out.stride}, Op::kAsIs, head.Weights(p).data,
             Op::kAsIs, v.data, out.data);
  });
}

void EigenBackend::AttentionMixBackward(const AttentionShape& shape, size_t batch, const float* p,
                                        const float* qkv, const float* dy, float* dp, float* dqkv) {
  const size_t n = shape.positions;
  ForHeads(shape, batch, [&](size_t index) {
    const Head head(shape, index);
    const Rows v = head.Of(qkv, 2);
    const Rows dv = head.Of(dqkv, 2);
    const Rows slope = head.Output(dy);
    HeadGemm({n, n, shape.width, slope.stride, v.stride, n}, Op::kAsIs, slope.data, Op::kTransposed,
             v.data, head.Weights(dp).data);
    HeadGemm({n, shape.width, n, n, slope.stride, dv.stride}, Op::kTransposed, head.Weights(p).data,
             Op::kAsIs, slope.data, dv.data);
  });
}

void EigenBackend::AttentionScoresBackward(const AttentionShape& shape, size_t batch,
                                           const float* p, const float* qkv, float* dp,
                                           float* dqkv) {
  const size_t n = shape.positions;
  ForHeads(shape, batch, [&](size_t index) {
    const Head head(shape, index);
    float* const slopes = head.Weights(dp).data;
    for (size_t i = 0; i < n; ++i) {
      SoftmaxSlope(shape.seen(i), n, ScoreScale(shape), head.Weights(p).data + i * n,
                   slopes + i * n);
    }
    const Rows q = head.Of(qkv, 0);
    const Rows k = head.Of(qkv, 1);
    const Rows dq = head.Of(dqkv, 0);
    const Rows dk = head.Of(dqkv, 1);
    HeadGemm({n, shape.width, n, n, k.stride, dq.stride}, Op::kAsIs, slopes, Op::kAsIs, k.data,
             dq.data);
    HeadGemm({n, shape.width, n, n, q.stride, dk.stride}, Op::kTransposed, slopes, Op::kAsIs,
             q.data, dk.data);
  });
}

}  // namespace leeway
