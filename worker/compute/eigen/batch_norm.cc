// Batch normalisation (Ioffe and Szegedy 2015, algorithm 1 and the gradients of section 3).
#include <algorithm>
#include <array>
#include <cmath>

#include "worker/compute/eigen/columns.h"
#include "worker/compute/eigen/eigen_backend.h"

namespace leeway {
namespace {

size_t RowGrain(const BatchNormOptions& options) {
  return std::max<size_t>(1, (1 << 15) / options.columns);
}

// Sets out[r, c] to value(element, column) for the rows [begin, end). `value` may read the same
// element of `out`.
template <typename Value>
void MapRows(size_t begin, size_t end, size_t columns, float* out, Value value) {
  for (size_t row = begin * columns; row < end * columns; row += columns) {
    ForChannelGroups(columns, [&]<size_t kWidth>(size_t first) {
      std::array<float, kWidth> group;
      for (size_t i = 0; i < kWidth; ++i) group[i] = value(row + first + i, first + i);
      std::copy_n(group.begin(), kWidth, out + row + first);
    });
  }
}

}  // namespace

void EigenBackend::Normalize(const BatchNormOptions& options, const BatchNormWeights& weights,
                             const float* mean, const float* inverse, const float* x, float* y) {
  const size_t columns = options.columns;
  column_floats_.resize(columns);
  float* const slope = column_floats_.data();
  for (size_t c = 0; c < columns; ++c) slope[c] = weights.gamma[c] * inverse[c];
  pool_.For(options.rows, RowGrain(options), [=, &weights](size_t begin, size_t end, uint32_t) {
    MapRows(begin, end, columns, y, [=, beta = weights.beta](size_t i, size_t c) {
      return (x[i] - mean[c]) * slope[c] + beta[c];
    });
  });
}

void EigenBackend::BatchNormForward(const BatchNormOptions& options,
                                    const BatchNormWeights& weights, const float* x, float* saved,
                                    float* batch_mean, float* batch_var, float* y) {
  const size_t columns = options.columns;
  float* mean = saved;
  float* inverse = saved + columns;
  const double rows = static_cast<double>(options.rows);
  // A batch of one row has no variance, so it leaves the running values unchanged.
  const bool keeps = options.rows == 1;
  const double unbias = keeps ? 1 : rows / (rows - 1);
  SumColumns<1>(
      pool_, column_totals_, options.rows, columns,
      [=](size_t r, size_t c) { return std::array{x[r * columns + c]}; },
      [=](size_t c, const auto& sums) { mean[c] = static_cast<float>(sums[0] / rows); });
  const auto square = [=](size_t r, size_t c) {
    const float deviation = x[r * columns + c] - mean[c];
    return std::array{deviation * deviation};
  };
  SumColumns<1>(pool_, column_totals_, options.rows, columns, square,
                [=, &options, &weights](size_t c, const auto& sums) {
                  const double variance = sums[0] / rows;
                  inverse[c] = static_cast<float>(1.0 / std::sqrt(variance + options.epsilon));
                  batch_mean[c] = keeps ? weights.running_mean[c] : mean[c];
                  batch_var[c] =
                      keeps ? weights.running_var[c] : static_cast<float>(variance * unbias);
                });
  Normalize(options, weights, mean, inverse, x, y);
}

void EigenBackend::BatchNormInference(const BatchNormOptions& options,
                                      const BatchNormWeights& weights, const float* x, float* y) {
  inverses_.resize(options.columns);
  for (size_t c = 0; c < options.columns; ++c) {
    // The elastic force and lossy codecs can make a variance slightly negative.
    const float variance = std::max(weights.running_var[c], 0.0f);
    inverses_[c] = 1.0f / std::sqrt(variance + options.epsilon);
  }
  Normalize(options, weights, weights.running_mean, inverses_.data(), x, y);
}

void EigenBackend::BatchNormBackward(const BatchNormOptions& options, const float* gamma,
                                     const float* x, const float* saved, const float* dy,
                                     float* dgamma, float* dbeta, float* dx) {
  const size_t columns = options.columns;
  const float* mean = saved;
  const float* inverse = saved + columns;
  SumColumns<2>(
      pool_, column_totals_, options.rows, columns,
      [=](size_t r, size_t c) {
        const size_t i = r * columns + c;
        return std::array{dy[i], dy[i] * ((x[i] - mean[c]) * inverse[c])};
      },
      [=](size_t c, const auto& sums) {
        dbeta[c] = static_cast<float>(sums[0]);
        dgamma[c] = static_cast<float>(sums[1]);
      });
  if (dx == nullptr) return;
  const float share = 1.0f / static_cast<float>(options.rows);
  column_floats_.resize(3 * columns);
  float* const centre = column_floats_.data();
  float* const along = centre + columns;
  float* const slope = along + columns;
  for (size_t c = 0; c < columns; ++c) {
    centre[c] = share * dbeta[c];
    along[c] = share * dgamma[c];
    slope[c] = gamma[c] * inverse[c];
  }
  pool_.For(options.rows, RowGrain(options), [=](size_t begin, size_t end, uint32_t) {
    MapRows(begin, end, columns, dx, [=](size_t i, size_t c) {
      return slope[c] * (dy[i] - centre[c] - (x[i] - mean[c]) * inverse[c] * along[c]);
    });
  });
}

}  // namespace leeway
