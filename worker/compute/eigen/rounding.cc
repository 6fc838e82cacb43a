#include "worker/compute/eigen/rounding.h"

#include <algorithm>

#include "worker/compute/eigen/eigen_backend.h"
#include "worker/compute/eigen/gemm.h"
#include "worker/compute/eigen/vectors.h"

namespace leeway {

void RoundAll(Precision precision, size_t count, const float* x, float* y) {
  switch (precision) {
    case Precision::kFp32:
      if (x != y) std::copy_n(x, count, y);
      return;
    case Precision::kTf32:
      return MapElements(
          0, count, y, [](float value) { return RoundTf32(value); }, x);
    case Precision::kBf16:
      return MapElements(
          0, count, y, [](float value) { return RoundBf16(value); }, x);
    case Precision::kFp16:
      return MapElements(
          0, count, y, [](float value) { return RoundFp16(value); }, x);
  }
}

void EigenBackend::RoundFactor(Factor factor, size_t rows, size_t columns, MatrixRef& matrix) {
  if (precision_ == Precision::kFp32 || rows == 0 || columns == 0) return;
  std::vector<float>& rounded = rounded_[static_cast<size_t>(factor)];
  if (rounded.size() < rows * columns) rounded.resize(rows * columns);
  const size_t grain = std::max<size_t>(1, (1 << 16) / columns);
  pool_.For(rows, grain, [&](size_t begin, size_t end, uint32_t) {
    for (size_t row = begin; row < end; ++row) {
      RoundAll(precision_, columns, matrix.data + row * matrix.stride,
               rounded.data() + row * columns);
    }
  });
  matrix.data = rounded.data();
  matrix.stride = columns;
}

}  // namespace leeway
