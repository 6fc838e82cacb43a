// Converts a row-major product to the column-major form that BLAS computes.
#pragma once

#include "worker/compute/backend.h"
#include "worker/device/cuda/runtime.h"

namespace leeway::cuda {

// A row-major matrix is its transpose in column-major order, and (A B)' = B' A'. So the operands
// swap places, and each operand keeps its own transposition. Strides count elements.
inline BlasProduct ColumnMajor(const GemmShape& shape, Op op_a, const void* a, Op op_b,
                               const void* b, bool accumulate, float* c) {
  const auto stride = [](size_t given, size_t packed) {
    return static_cast<int64_t>(given == 0 ? packed : given);
  };
  const bool ta = op_a == Op::kTransposed;
  const bool tb = op_b == Op::kTransposed;
  return {.transpose_a = tb,
          .transpose_b = ta,
          .m = static_cast<int64_t>(shape.n),
          .n = static_cast<int64_t>(shape.m),
          .k = static_cast<int64_t>(shape.k),
          .a = b,
          .lda = stride(shape.b_stride, tb ? shape.k : shape.n),
          .b = a,
          .ldb = stride(shape.a_stride, ta ? shape.m : shape.k),
          .beta = accumulate ? 1.0f : 0.0f,
          .c = c,
          .ldc = stride(shape.c_stride, shape.n)};
}

}  // namespace leeway::cuda
