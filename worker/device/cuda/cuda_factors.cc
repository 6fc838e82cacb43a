// Products in the backend's precision. cuBLAS reads float32 factors directly, and rounds them to
// TF32 itself. For bf16 and fp16, cuBLAS reads 16-bit copies of the factors.
#include <algorithm>

#include "worker/device/cuda/column_major.h"
#include "worker/device/cuda/cuda_backend.h"
#include "worker/device/cuda/factor_cut.h"
#include "worker/device/cuda/kernels/factors.h"
#include "worker/device/cuda/launch.h"

namespace leeway::cuda {

struct CudaBackend::Operand {
  const float* data;
  size_t stride;
  Op op;
  HalvesGroup* copy;

  // Returns the address of element (row, column) of op(matrix).
  const float* At(size_t row, size_t column) const {
    return data + (op == Op::kAsIs ? row * stride + column : column * stride + row);
  }
};

size_t CudaBackend::CopyPart(const Operand& operand, size_t row, size_t column, size_t rows,
                             size_t columns) {
  const float* const x = operand.At(row, column);
  if (operand.op == Op::kTransposed) std::swap(rows, columns);
  const size_t groups = WholeGroups(columns) / kGroupHalves;
  if (precision_ == Precision::kBf16) {
    Launch(queue_, "Gemm", rows * groups,
           CopyFactor<ToBf16>{{}, columns, groups, operand.stride, x, operand.copy});
  } else {
    Launch(queue_, "Gemm", rows * groups,
           CopyFactor<ToFp16>{{}, columns, groups, operand.stride, x, operand.copy});
  }
  return groups * kGroupHalves;
}

void CudaBackend::GemmInPrecision(const GemmShape& shape, Op op_a, const float* a, Op op_b,
                                  const float* b, bool accumulate, float* c) {
  if (HasHalves(precision_)) return ProductOfCopies(shape, op_a, a, op_b, b, accumulate, c);
  BlasProduct product = ColumnMajor(shape, op_a, a, op_b, b, accumulate, c);
  product.precision = precision_;
  queue_.Multiply(product);
}

void CudaBackend::ProductOfCopies(const GemmShape& shape, Op op_a, const float* a, Op op_b,
                                  const float* b, bool accumulate, float* c) {
  const auto [m, n, k, a_stride, b_stride, c_stride] = shape;
  const size_t groups = FactorBytes(precision_) / 2 / sizeof(HalvesGroup);
  auto* const copies = static_cast<HalvesGroup*>(factors_);
  const Operand left{a, a_stride != 0 ? a_stride : op_a == Op::kAsIs ? k : m, op_a, copies};
  const Operand right{b,
                      b_stride != 0       ? b_stride
                      : op_b == Op::kAsIs ? n
                                          : k,
                      op_b, copies + groups};
  const FactorCut cut = FactorCut::Of(shape, groups * kGroupHalves);
  GemmShape part{.c_stride = c_stride == 0 ? n : c_stride};
  for (size_t p = 0; p < k; p += cut.k) {
    part.k = std::min(cut.k, k - p);
    for (size_t i = 0; i < m; i += cut.m) {
      part.m = std::min(cut.m, m - i);
      part.a_stride = CopyPart(left, i, p, part.m, part.k);
      for (size_t j = 0; j < n; j += cut.n) {
        part.n = std::min(cut.n, n - j);
        // If all of b fits into the copy, the copy from the first rows is still valid.
        if (i == 0 || cut.n < n) part.b_stride = CopyPart(right, p, j, part.k, part.n);
        BlasProduct product = ColumnMajor(part, op_a, left.copy, op_b, right.copy,
                                          accumulate || p > 0, c + i * part.c_stride + j);
        product.precision = precision_;
        queue_.Multiply(product);
      }
    }
  }
}

}  // namespace leeway::cuda
