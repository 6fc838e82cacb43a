// Fills, copies and sums over rows. Each element is computed independently, in loops that
// the compiler vectorises.
#include <algorithm>

#include "worker/compute/eigen/columns.h"
#include "worker/compute/eigen/eigen_backend.h"
#include "worker/compute/eigen/vectors.h"

namespace leeway {
namespace {

// The number of elements for which waking a thread is worthwhile.
constexpr size_t kGrain = 1 << 15;

}  // namespace

void EigenBackend::Fill(size_t count, float value, float* y) {
  pool_.For(count, kGrain, [=](size_t begin, size_t end, uint32_t) {
    std::fill_n(y + begin, end - begin, value);
  });
}

void EigenBackend::Copy(size_t count, const float* x, float* y) {
  pool_.For(count, kGrain, [=](size_t begin, size_t end, uint32_t) {
    std::copy_n(x + begin, end - begin, y + begin);
  });
}

void EigenBackend::CopyColumns(const ColumnCopy& shape, const float* x, float* y) {
  const size_t grain = std::max<size_t>(1, kGrain / std::max<size_t>(1, shape.columns));
  pool_.For(shape.rows, grain, [=, &shape](size_t begin, size_t end, uint32_t) {
    for (size_t row = begin; row < end; ++row) {
      std::copy_n(x + row * shape.from_stride, shape.columns, y + row * shape.to_stride);
    }
  });
}

void EigenBackend::Multiply(size_t count, const float* x, const float* y, float* z) {
  pool_.For(count, kGrain, [=](size_t begin, size_t end, uint32_t) {
    MapElements(
        begin, end, z, [](float x, float y) { return x * y; }, x, y);
  });
}

void EigenBackend::FillRows(size_t rows, size_t columns, const float* row, float* y) {
  const size_t grain = std::max<size_t>(1, kGrain / std::max<size_t>(1, columns));
  pool_.For(rows, grain, [=](size_t begin, size_t end, uint32_t) {
    for (size_t i = begin; i < end; ++i) std::copy_n(row, columns, y + i * columns);
  });
}

void EigenBackend::AddRows(size_t rows, size_t columns, const float* row, float* y) {
  const auto add = [](float x, float y) { return x + y; };
  // A single row is divided among the threads like a vector.
  if (rows == 1) {
    pool_.For(columns, kGrain,
              [=](size_t begin, size_t end, uint32_t) { MapElements(begin, end, y, add, row, y); });
    return;
  }
  const size_t grain = std::max<size_t>(1, kGrain / std::max<size_t>(1, columns));
  pool_.For(rows, grain, [=](size_t begin, size_t end, uint32_t) {
    for (size_t i = begin; i < end; ++i) {
      MapElements(0, columns, y + i * columns, add, row, y + i * columns);
    }
  });
}

void EigenBackend::SumRows(size_t rows, size_t columns, const float* x, float* sum) {
  SumColumns<1>(
      pool_, column_totals_, rows, columns,
      [=](size_t r, size_t c) { return std::array{x[r * columns + c]}; },
      [=](size_t c, const auto& sums) { sum[c] = static_cast<float>(sums[0]); });
}

}  // namespace leeway
