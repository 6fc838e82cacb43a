// Batch normalisation (Ioffe and Szegedy 2015, algorithm 1 and the gradients of section 3).
#include <algorithm>
#include <array>
#include <cmath>

#include "worker/compute/eigen/columns.h"
#include "worker/compute/eigen/eigen_backend.h"

namespace leeway {
namespace {

size_t ColumnGrain(const BatchNormOptions& options) {
  return std::max<size_t>(32, (1 << 14) / std::max<size_t>(1, options.rows));
}
size_t RowGrain(const BatchNormOptions& options) {
  return std::max<size_t>(1, (1 << 15) / options.columns);
}

// y = (x - mean) * (gamma * inverse) + beta for the columns [begin, end); inverse[c - begin].
void NormalizeColumns(const BatchNormOptions& options, size_t begin, size_t end,
                      const BatchNormWeights& weights, const float* mean, const float* inverse,
                      const float* x, float* y) {
  for (size_t r = 0; r < options.rows; ++r) {
    const size_t row = r * options.columns;
    for (size_t c = begin; c < end; ++c) {
      const float slope = weights.gamma[c] * inverse[c - begin];
      y[row + c] = (x[row + c] - mean[c]) * slope + weights.beta[c];
    }
  }
}

}  // namespace

void EigenBackend::BatchNormForward(const BatchNormOptions& options,
                                    const BatchNormWeights& weights, const float* x, float* saved,
                                    float* batch_mean, float* batch_var, float* y) {
  const size_t columns = options.columns;
  float* mean = saved;
  float* inverse = saved + columns;
  const double rows = static_cast<double>(options.rows);
  // One row has no unbiased variance: its biased one, 0, is taken.
  const double unbias = options.rows > 1 ? rows / (rows - 1) : 1.0;
  pool_.For(columns, ColumnGrain(options), [=, &options](size_t begin, size_t end, uint32_t) {
    ColumnSums(
        options.rows, begin, end, [=](size_t r, size_t c) { return x[r * columns + c]; },
        [=](size_t c, double total) { mean[c] = static_cast<float>(total / rows); });
    const auto square = [=](size_t r, size_t c) {
      const float deviation = x[r * columns + c] - mean[c];
      return deviation * deviation;
    };
    ColumnSums(options.rows, begin, end, square, [=, &options](size_t c, double total) {
      const double variance = total / rows;
      inverse[c] = static_cast<float>(1.0 / std::sqrt(variance + options.epsilon));
      batch_mean[c] = mean[c];
      batch_var[c] = static_cast<float>(variance * unbias);
    });
    NormalizeColumns(options, begin, end, weights, mean, inverse + begin, x, y);
  });
}

void EigenBackend::BatchNormInference(const BatchNormOptions& options,
                                      const BatchNormWeights& weights, const float* x, float* y) {
  constexpr size_t kTile = 64;
  pool_.For(options.columns, ColumnGrain(options),
            [=, &options](size_t begin, size_t end, uint32_t) {
              for (size_t tile = begin; tile < end; tile += kTile) {
                const size_t tile_end = std::min(end, tile + kTile);
                std::array<float, kTile> inverse;
                for (size_t c = tile; c < tile_end; ++c) {
                  // The elastic force and lossy codecs can take a variance a little below zero.
                  const float variance = std::max(weights.running_var[c], 0.0f);
                  inverse[c - tile] = 1.0f / std::sqrt(variance + options.epsilon);
                }
                NormalizeColumns(options, tile, tile_end, weights, weights.running_mean,
                                 inverse.data(), x, y);
              }
            });
}

void EigenBackend::BatchNormBackward(const BatchNormOptions& options, const float* gamma,
                                     const float* x, const float* saved, const float* dy,
                                     float* dgamma, float* dbeta, float* dx) {
  const size_t columns = options.columns;
  const float* mean = saved;
  const float* inverse = saved + columns;
  pool_.For(columns, ColumnGrain(options), [=, &options](size_t begin, size_t end, uint32_t) {
    ColumnSums(
        options.rows, begin, end, [=](size_t r, size_t c) { return dy[r * columns + c]; },
        [=](size_t c, double total) { dbeta[c] = static_cast<float>(total); });
    const auto scaled = [=](size_t r, size_t c) {
      return dy[r * columns + c] * ((x[r * columns + c] - mean[c]) * inverse[c]);
    };
    ColumnSums(options.rows, begin, end, scaled,
               [=](size_t c, double total) { dgamma[c] = static_cast<float>(total); });
  });
  if (dx == nullptr) return;
  const float share = 1.0f / static_cast<float>(options.rows);
  pool_.For(options.rows, RowGrain(options), [=](size_t begin, size_t end, uint32_t) {
    for (size_t r = begin; r < end; ++r) {
      for (size_t c = 0; c < columns; ++c) {
        const size_t i = r * columns + c;
        const float normal = (x[i] - mean[c]) * inverse[c];
        const float centred = dy[i] - share * dbeta[c] - normal * (share * dgamma[c]);
        dx[i] = gamma[c] * inverse[c] * centred;
      }
    }
  });
}

}  // namespace leeway
