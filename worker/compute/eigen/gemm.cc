#include "worker/compute/eigen/gemm.h"

#include <algorithm>
#include <array>

#include <Eigen/Core>

#include "worker/compute/eigen/eigen_backend.h"

namespace leeway {
namespace {

using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using ConstMap = Eigen::Map<const Matrix, Eigen::Unaligned, Eigen::OuterStride<>>;
using Map = Eigen::Map<Matrix, Eigen::Unaligned, Eigen::OuterStride<>>;

// The limit on m + n + k below which a product is tiny. Eigen multiplies such matrices coefficient
// by coefficient. Its packets start where the result is aligned, so the bits would depend on the
// address. 20 is Eigen's own threshold.
constexpr size_t kTiny = 20;

// Returns true if Eigen computes the product. For tiny products and for products of a matrix and a
// vector, this file has its own loops.
bool IsForBlocks(const GemmShape& shape) {
  return shape.m > 1 && shape.n > 1 && shape.k > 0 && shape.m + shape.n + shape.k >= kTiny;
}

float At(const MatrixRef& x, size_t row, size_t column) {
  return x.op == Op::kAsIs ? x.data[row * x.stride + column] : x.data[column * x.stride + row];
}

void TinyAdd(const GemmShape& shape, const MatrixRef& a, const MatrixRef& b, float* c,
             size_t c_stride) {
  for (size_t i = 0; i < shape.m; ++i) {
    for (size_t j = 0; j < shape.n; ++j) {
      float sum = 0;
      for (size_t p = 0; p < shape.k; ++p) sum += At(a, i, p) * At(b, p, j);
      c[i * c_stride + j] += sum;
    }
  }
}

// Computes a scalar product in 32 running sums, so that the compiler may vectorise without
// reordering.
float Dot(size_t count, const float* x, const float* y) {
  constexpr size_t kLanes = 32;
  std::array<float, kLanes> sums{};
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) sums[lane] += x[i + lane] * y[i + lane];
  }
  for (size_t lane = 0; i < count; ++i, ++lane) sums[lane] += x[i] * y[i];
  for (size_t width = kLanes / 2; width > 0; width /= 2) {
    for (size_t lane = 0; lane < width; ++lane) sums[lane] += sums[lane + width];
  }
  return sums[0];
}

// Computes y [rows] += op(matrix) [rows x columns] x [columns]. Elements of x are x_stride apart,
// and elements of y are y_stride apart.
void MatrixVectorAdd(size_t rows, size_t columns, const MatrixRef& matrix, const float* x,
                     size_t x_stride, float* y, size_t y_stride) {
  if (matrix.op == Op::kAsIs && x_stride == 1) {
    for (size_t i = 0; i < rows; ++i) {
      y[i * y_stride] += Dot(columns, matrix.data + i * matrix.stride, x);
    }
    return;
  }
  if (matrix.op == Op::kTransposed && y_stride == 1) {
    for (size_t p = 0; p < columns; ++p) {
      const float factor = x[p * x_stride];
      const float* row = matrix.data + p * matrix.stride;
      for (size_t i = 0; i < rows; ++i) y[i] += factor * row[i];
    }
    return;
  }
  for (size_t i = 0; i < rows; ++i) {
    float sum = 0;
    for (size_t p = 0; p < columns; ++p) sum += At(matrix, i, p) * x[p * x_stride];
    y[i * y_stride] += sum;
  }
}

size_t StrideOr(size_t stride, size_t packed) { return stride == 0 ? packed : stride; }

Op Other(Op op) { return op == Op::kAsIs ? Op::kTransposed : Op::kAsIs; }

void EigenAdd(const GemmShape& shape, const MatrixRef& a, const MatrixRef& b, float* c,
              size_t c_stride) {
  const size_t m = shape.m;
  const size_t n = shape.n;
  const size_t k = shape.k;
  const bool ta = a.op == Op::kTransposed;
  const bool tb = b.op == Op::kTransposed;
  const ConstMap left(a.data, ta ? k : m, ta ? m : k, Eigen::OuterStride<>(a.stride));
  const ConstMap right(b.data, tb ? n : k, tb ? k : n, Eigen::OuterStride<>(b.stride));
  Map result(c, m, n, Eigen::OuterStride<>(c_stride));
  if (!ta && !tb) {
    result.noalias() += left * right;
  } else if (ta && !tb) {
    result.noalias() += left.transpose() * right;
  } else if (!ta) {
    result.noalias() += left * right.transpose();
  } else {
    result.noalias() += left.transpose() * right.transpose();
  }
}

}  // namespace

void GemmAdd(const GemmShape& shape, const MatrixRef& a, const MatrixRef& b, float* c,
             size_t c_stride) {
  const size_t m = shape.m;
  const size_t n = shape.n;
  const size_t k = shape.k;
  if (m == 0 || n == 0 || k == 0) return;
  if (m + n + k < kTiny) {
    TinyAdd(shape, a, b, c, c_stride);
  } else if (n == 1) {
    MatrixVectorAdd(m, k, a, b.data, b.op == Op::kAsIs ? b.stride : 1, c, c_stride);
  } else if (m == 1) {
    MatrixVectorAdd(n, k, {b.data, b.stride, Other(b.op)}, a.data, a.op == Op::kAsIs ? 1 : a.stride,
                    c, 1);
  } else {
    EigenAdd(shape, a, b, c, c_stride);
  }
}

void EigenBackend::Gemm(const GemmShape& shape, Op op_a, const float* a, Op op_b, const float* b,
                        bool accumulate, float* c) {
  const size_t m = shape.m;
  const size_t n = shape.n;
  const size_t k = shape.k;
  MatrixRef left{a, StrideOr(shape.a_stride, op_a == Op::kAsIs ? k : m), op_a};
  MatrixRef right{b, StrideOr(shape.b_stride, op_b == Op::kAsIs ? n : k), op_b};
  RoundFactor(Factor::kFirst, op_a == Op::kAsIs ? m : k, op_a == Op::kAsIs ? k : m, left);
  RoundFactor(Factor::kSecond, op_b == Op::kAsIs ? k : n, op_b == Op::kAsIs ? n : k, right);
  const size_t c_stride = StrideOr(shape.c_stride, n);
  // The threads divide the rows among them, or the columns if there are more columns. From 2^18
  // multiplications on it is worthwhile to wake a thread.
  const bool by_row = m >= n;
  const size_t grain = std::max<size_t>(16, (1 << 18) / std::max<size_t>(1, k * (by_row ? n : m)));
  pool_.For(by_row ? m : n, grain, [&](size_t begin, size_t end, uint32_t) {
    const size_t size = end - begin;
    MatrixRef left_part = left;
    MatrixRef right_part = right;
    GemmShape part = shape;
    float* target = c + (by_row ? begin * c_stride : begin);
    if (by_row) {
      part.m = size;
      left_part.data += begin * (op_a == Op::kAsIs ? left.stride : 1);
    } else {
      part.n = size;
      right_part.data += begin * (op_b == Op::kAsIs ? 1 : right.stride);
    }
    if (library_ != nullptr && IsForBlocks(part)) {
      part.a_stride = left.stride;
      part.b_stride = right.stride;
      part.c_stride = c_stride;
      library_->Multiply(part, op_a, left_part.data, op_b, right_part.data, accumulate, target);
      return;
    }
    if (!accumulate) {
      for (size_t i = 0; i < part.m; ++i) std::fill_n(target + i * c_stride, part.n, 0.0f);
    }
    GemmAdd(part, left_part, right_part, target, c_stride);
  });
}

}  // namespace leeway
