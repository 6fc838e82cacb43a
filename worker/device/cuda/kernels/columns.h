// Sums over the rows of a matrix, for each of its columns, in two kernels. The order of additions
// depends on the shape alone. The kernels use no atomics, and no thread waits for another thread.
#pragma once

#include <algorithm>
#include <cstddef>

#include "common/host_device.h"

namespace leeway::cuda {

// How the rows are divided into chunks. A thread of the first kernel sums one chunk of one column.
// A thread of the second kernel sums the chunks of one column.
struct ColumnCut {
  // The number of rows in a block. Sums within a block are in float. Sums across blocks are in
  // double, as on the CPU.
  static constexpr size_t kBlock = 64;
  static constexpr size_t kChunksMax = 1024;

  // Divides the rows into chunks, so that there are at most `capacity` partial sums. If there is
  // one chunk, ColumnSums does the work of both kernels.
  static ColumnCut Of(size_t rows, size_t columns, size_t capacity) {
    const size_t blocks = (rows + kBlock - 1) / kBlock;
    const size_t most = std::min(kChunksMax, capacity / std::max<size_t>(1, columns));
    const size_t chunks = std::max<size_t>(1, std::min(blocks, most));
    const size_t chunk_blocks = std::max<size_t>(1, (blocks + chunks - 1) / chunks);
    const size_t chunk_rows = chunk_blocks * kBlock;
    return {rows, columns, chunk_rows, std::max<size_t>(1, (rows + chunk_rows - 1) / chunk_rows)};
  }

  size_t rows;
  size_t columns;
  size_t chunk_rows;
  size_t chunks;
};

// Returns the sum of term(row, column) over the chunk.
template <typename Term>
LEEWAY_HOST_DEVICE double ChunkSum(const ColumnCut& cut, const Term& term, size_t chunk,
                                   size_t column) {
  const size_t first = chunk * cut.chunk_rows;
  const size_t last = first + cut.chunk_rows < cut.rows ? first + cut.chunk_rows : cut.rows;
  double total = 0;
  for (size_t row = first; row < last;) {
    const size_t end = row + ColumnCut::kBlock < last ? row + ColumnCut::kBlock : last;
    float block = 0;
    // The unrolled loop loads several terms from memory while it adds them one by one.
    LEEWAY_UNROLL(8)
    for (; row < end; ++row) block += term(row, column);
    total += block;
  }
  return total;
}

// The first kernel. It runs once for each chunk of each column.
template <typename Term>
struct ColumnPartials {
  ColumnCut cut;
  Term term;
  double* partials;
  LEEWAY_HOST_DEVICE void operator()(size_t i) const {
    partials[i] = ChunkSum(cut, term, i / cut.columns, i % cut.columns);
  }
};

// The second kernel. It runs once for each column, and calls sink(column, sum).
template <typename Sink>
struct ColumnTotals {
  ColumnCut cut;
  const double* partials;
  Sink sink;
  LEEWAY_HOST_DEVICE void operator()(size_t column) const {
    double total = 0;
    for (size_t chunk = 0; chunk < cut.chunks; ++chunk) {
      total += partials[chunk * cut.columns + column];
    }
    sink(column, total);
  }
};

// Does the work of both kernels, for the case of one chunk.
template <typename Term, typename Sink>
struct ColumnSums {
  ColumnCut cut;
  Term term;
  Sink sink;
  LEEWAY_HOST_DEVICE void operator()(size_t column) const {
    sink(column, ChunkSum(cut, term, 0, column));
  }
};

struct MatrixTerm {
  size_t columns;
  const float* x;
  LEEWAY_HOST_DEVICE float operator()(size_t row, size_t column) const {
    return x[row * columns + column];
  }
};
struct SumSink {
  float* sum;
  LEEWAY_HOST_DEVICE void operator()(size_t column, double total) const {
    sum[column] = static_cast<float>(total);
  }
};

}  // namespace leeway::cuda
