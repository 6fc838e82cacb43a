// Single-threaded matrix products, whose bits depend on values and shapes alone.
#pragma once

#include "worker/compute/backend.h"

namespace leeway {

// An operand. It is row-major, with `stride` floats from one stored row to the next.
struct MatrixRef {
  const float* data = nullptr;
  size_t stride = 0;
  Op op = Op::kAsIs;
};

// Computes c [m x n] += op(a) [m x k] op(b) [k x n]. The strides in `shape` are ignored.
void GemmAdd(const GemmShape& shape, const MatrixRef& a, const MatrixRef& b, float* c,
             size_t c_stride);

}  // namespace leeway
