// Sums over the rows of a matrix, for each of its columns.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

#include "worker/compute/eigen/vectors.h"
#include "worker/compute/thread_pool.h"

namespace leeway {

// The number of rows in a block of rows. Sums within a block are in float, so that the compiler
// vectorises them. Sums across blocks are in double, so that the error of long sums stays small. A
// block's rows stay in the cache while its columns are summed.
inline constexpr size_t kRowBlock = 64;

// Adds the sums of kWidth columns over the rows [begin, end) to totals [kSums x columns].
// value(row, column) returns a term of each of the kSums sums. The bits of a column's sum do not
// depend on kWidth.
template <size_t kWidth, size_t kSums, typename Value>
void AddBlock(size_t begin, size_t end, size_t column, Value value, double* totals,
              size_t columns) {
  std::array<std::array<float, kWidth>, kSums> block{};
  for (size_t row = begin; row < end; ++row) {
    for (size_t i = 0; i < kWidth; ++i) {
      const std::array<float, kSums> terms = value(row, column + i);
      for (size_t sum = 0; sum < kSums; ++sum) block[sum][i] += terms[sum];
    }
  }
  for (size_t sum = 0; sum < kSums; ++sum) {
    for (size_t i = 0; i < kWidth; ++i) totals[sum * columns + column + i] += block[sum][i];
  }
}

// Adds the sums of all columns over the blocks [begin, end) of the rows.
template <size_t kSums, typename Value>
void AddBlocks(size_t begin, size_t end, size_t rows, size_t columns, Value value, double* totals) {
  for (size_t block = begin; block < end; ++block) {
    const size_t first = block * kRowBlock;
    const size_t last = std::min(rows, first + kRowBlock);
    ForChannelGroups(columns, [&]<size_t kWidth>(size_t column) {
      AddBlock<kWidth, kSums>(first, last, column, value, totals, columns);
    });
  }
}

// Calls sink(column, sums) for each column, after all terms are read. Each thread sums blocks of
// rows. The totals of the threads are added in order. `totals` is a buffer that the caller can
// reuse.
template <size_t kSums, typename Value, typename Sink>
void SumColumns(ThreadPool& pool, std::vector<double>& totals, size_t rows, size_t columns,
                Value value, Sink sink) {
  const size_t blocks = (rows + kRowBlock - 1) / kRowBlock;
  const size_t grain = std::max<size_t>(1, (1 << 15) / (kRowBlock * std::max<size_t>(1, columns)));
  const uint32_t parts = pool.Parts(blocks, grain);
  const size_t part_totals = kSums * columns;
  totals.assign(parts * part_totals, 0.0);
  pool.For(blocks, grain, [&](size_t begin, size_t end, uint32_t part) {
    AddBlocks<kSums>(begin, end, rows, columns, value, totals.data() + part * part_totals);
  });
  for (size_t column = 0; column < columns; ++column) {
    std::array<double, kSums> sums{};
    for (size_t sum = 0; sum < kSums; ++sum) {
      for (uint32_t part = 0; part < parts; ++part) {
        sums[sum] += totals[part * part_totals + sum * columns + column];
      }
    }
    sink(column, sums);
  }
}

// Same as SumColumns, for one sum and on the calling thread alone. Calls sink(column, sum).
template <typename Value, typename Sink>
void ColumnSums(size_t rows, size_t columns, std::vector<double>& totals, Value value, Sink sink) {
  totals.assign(columns, 0.0);
  const auto terms = [&](size_t row, size_t column) { return std::array{value(row, column)}; };
  AddBlocks<1>(0, (rows + kRowBlock - 1) / kRowBlock, rows, columns, terms, totals.data());
  for (size_t column = 0; column < columns; ++column) sink(column, totals[column]);
}

}  // namespace leeway
