// Sums over the rows of a matrix, for each of its columns.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

namespace leeway {

// Sums of kWidth columns over `rows` rows, where value(row, column) gives a term: in float within
// kRowBlock rows, which vectorises, in double across them, which keeps the error of long sums
// small. A column's sum does not depend on the width.
template <size_t kWidth, typename Value, typename Sink>
void ColumnSumsOfWidth(size_t rows, size_t first_column, Value value, Sink sink) {
  constexpr size_t kRowBlock = 64;
  std::array<double, kWidth> totals{};
  for (size_t row = 0; row < rows;) {
    const size_t end = std::min(rows, row + kRowBlock);
    std::array<float, kWidth> block{};
    for (; row < end; ++row) {
      for (size_t i = 0; i < kWidth; ++i) block[i] += value(row, first_column + i);
    }
    for (size_t i = 0; i < kWidth; ++i) totals[i] += block[i];
  }
  for (size_t i = 0; i < kWidth; ++i) sink(first_column + i, totals[i]);
}

// Calls sink(column, sum) for the columns [begin, end).
template <typename Value, typename Sink>
void ColumnSums(size_t rows, size_t begin, size_t end, Value value, Sink sink) {
  size_t column = begin;
  for (; column + 32 <= end; column += 32) ColumnSumsOfWidth<32>(rows, column, value, sink);
  for (; column + 8 <= end; column += 8) ColumnSumsOfWidth<8>(rows, column, value, sink);
  for (; column < end; ++column) ColumnSumsOfWidth<1>(rows, column, value, sink);
}

}  // namespace leeway
