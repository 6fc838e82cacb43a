// Batch normalisation: the terms and outputs of its column sums (columns.h), and the kernels on
// single elements.
#pragma once

#include <cmath>
#include <cstddef>

#include "common/host_device.h"

namespace leeway::cuda {

struct MeanSink {
  double rows;
  float* mean;
  float* batch_mean;
  // For a batch of one row, which has no variance: the running means, which stay unchanged. Null
  // for larger batches.
  const float* kept;
  LEEWAY_HOST_DEVICE void operator()(size_t column, double total) const {
    mean[column] = static_cast<float>(total / rows);
    batch_mean[column] = kept != nullptr ? kept[column] : mean[column];
  }
};

struct SquaredDeviation {
  size_t columns;
  const float* x;
  const float* mean;
  LEEWAY_HOST_DEVICE float operator()(size_t row, size_t column) const {
    const float deviation = x[row * columns + column] - mean[column];
    return deviation * deviation;
  }
};
struct VarianceSink {
  double rows;
  // The factor that turns the biased variance into the unbiased variance.
  double unbias;
  float epsilon;
  float* inverse;
  float* batch_var;
  const float* kept;
  LEEWAY_HOST_DEVICE void operator()(size_t column, double total) const {
    const double variance = total / rows;
    inverse[column] = static_cast<float>(1.0 / sqrt(variance + epsilon));
    batch_var[column] = kept != nullptr ? kept[column] : static_cast<float>(variance * unbias);
  }
};

struct Normalize {
  size_t columns;
  const float* gamma;
  const float* beta;
  const float* mean;
  // 1 / standard deviation. If null, the kernel computes it from `variance`.
  const float* inverse;
  const float* variance;
  float epsilon;
  const float* x;
  float* y;

  LEEWAY_HOST_DEVICE float Inverse(size_t column) const {
    if (inverse != nullptr) return inverse[column];
    // The elastic force and lossy codecs can make a variance slightly negative.
    const float above = variance[column] < 0.0f ? 0.0f : variance[column];
    return 1.0f / sqrtf(above + epsilon);
  }
  LEEWAY_HOST_DEVICE void operator()(size_t i) const {
    const size_t c = i % columns;
    const float slope = gamma[c] * Inverse(c);
    y[i] = (x[i] - mean[c]) * slope + beta[c];
  }
};

// A term of the sum that is dgamma.
struct NormalTerm {
  size_t columns;
  const float* x;
  const float* mean;
  const float* inverse;
  const float* dy;
  LEEWAY_HOST_DEVICE float operator()(size_t row, size_t c) const {
    const size_t i = row * columns + c;
    return dy[i] * ((x[i] - mean[c]) * inverse[c]);
  }
};

struct NormalizeSlope {
  size_t columns;
  float share;
  const float* gamma;
  const float* mean;
  const float* inverse;
  const float* dgamma;
  const float* dbeta;
  const float* x;
  const float* dy;
  float* dx;
  LEEWAY_HOST_DEVICE void operator()(size_t i) const {
    const size_t c = i % columns;
    const float normal = (x[i] - mean[c]) * inverse[c];
    const float centred = dy[i] - share * dbeta[c] - normal * (share * dgamma[c]);
    dx[i] = gamma[c] * inverse[c] * centred;
  }
};

}  // namespace leeway::cuda
