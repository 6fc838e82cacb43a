// The kernels in double and in the plainest way, which backends are checked against.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "worker/compute/backend.h"

namespace leeway::testing {

using Doubles = std::vector<double>;
using Floats = std::vector<float>;

inline Doubles ReferenceGemm(const GemmShape& shape, Op op_a, const Floats& a, Op op_b,
                             const Floats& b, const Floats* start) {
  Doubles c(shape.m * shape.n);
  for (size_t i = 0; i < shape.m; ++i) {
    for (size_t j = 0; j < shape.n; ++j) {
      double sum = start == nullptr ? 0.0 : (*start)[i * shape.n + j];
      for (size_t p = 0; p < shape.k; ++p) {
        const double left = op_a == Op::kAsIs ? a[i * shape.k + p] : a[p * shape.m + i];
        const double right = op_b == Op::kAsIs ? b[p * shape.n + j] : b[j * shape.k + p];
        sum += left * right;
      }
      c[i * shape.n + j] = sum;
    }
  }
  return c;
}

// Calls visit(output pixel, input pixel or -1 outside the image, kernel position), with pixels
// counted over the batch.
template <typename Visit>
void ForEachTap(const Conv2dShape& shape, size_t batch, Visit visit) {
  const ImageShape out = shape.output();
  for (size_t e = 0; e < batch; ++e) {
    for (size_t oy = 0; oy < out.height; ++oy) {
      for (size_t ox = 0; ox < out.width; ++ox) {
        for (size_t ky = 0; ky < shape.kernel; ++ky) {
          for (size_t kx = 0; kx < shape.kernel; ++kx) {
            const auto y = static_cast<long>(oy * shape.stride + ky) - shape.padding;
            const auto x = static_cast<long>(ox * shape.stride + kx) - shape.padding;
            const bool inside = y >= 0 && x >= 0 && y < shape.input.height && x < shape.input.width;
            const long in = inside ? (e * shape.input.height + y) * shape.input.width + x : -1;
            visit((e * out.height + oy) * out.width + ox, in, ky * shape.kernel + kx);
          }
        }
      }
    }
  }
}

inline Doubles ReferenceConv(const Conv2dShape& shape, size_t batch, const Floats& x,
                             const Floats& weight, const Floats* bias) {
  const size_t channels = shape.input.channels;
  Doubles y(batch * shape.output().elements());
  for (size_t i = 0; i < y.size(); ++i) y[i] = bias == nullptr ? 0 : (*bias)[i % shape.filters];
  ForEachTap(shape, batch, [&](size_t out, long in, size_t place) {
    for (size_t c = 0; in >= 0 && c < channels; ++c) {
      for (size_t f = 0; f < shape.filters; ++f) {
        y[out * shape.filters + f] += static_cast<double>(x[in * channels + c]) *
                                      weight[(place * channels + c) * shape.filters + f];
      }
    }
  });
  return y;
}

struct ConvGradients {
  Doubles weight;
  Doubles bias;
  Doubles x;
};

inline ConvGradients ReferenceConvBackward(const Conv2dShape& shape, size_t batch, const Floats& x,
                                           const Floats& weight, const Floats& dy) {
  const size_t channels = shape.input.channels;
  ConvGradients d{Doubles(weight.size()), Doubles(shape.filters), Doubles(x.size())};
  for (size_t i = 0; i < dy.size(); ++i) d.bias[i % shape.filters] += dy[i];
  ForEachTap(shape, batch, [&](size_t out, long in, size_t place) {
    for (size_t c = 0; in >= 0 && c < channels; ++c) {
      for (size_t f = 0; f < shape.filters; ++f) {
        const double slope = dy[out * shape.filters + f];
        const size_t w = (place * channels + c) * shape.filters + f;
        d.weight[w] += slope * x[in * channels + c];
        d.x[in * channels + c] += slope * weight[w];
      }
    }
  });
  return d;
}

// Calls visit(output index, the input indices of its window in order).
template <typename Visit>
void ForEachWindow(const PoolShape& shape, size_t batch, Visit visit) {
  const ImageShape out = shape.output();
  const size_t channels = out.channels;
  for (size_t i = 0; i < batch * out.elements(); ++i) {
    const size_t c = i % channels;
    const size_t ox = i / channels % out.width;
    const size_t oy = i / channels / out.width % out.height;
    const size_t e = i / out.elements();
    std::vector<size_t> window;
    for (size_t ky = 0; ky < shape.size; ++ky) {
      for (size_t kx = 0; kx < shape.size; ++kx) {
        const size_t row = e * shape.input.height + oy * shape.stride + ky;
        window.push_back((row * shape.input.width + ox * shape.stride + kx) * channels + c);
      }
    }
    visit(i, window);
  }
}

struct BatchNormReference {
  Doubles y, mean, variance, dgamma, dbeta, dx;
};

inline BatchNormReference ReferenceBatchNorm(size_t rows, size_t columns, double epsilon,
                                             const Floats& x, const Floats& gamma,
                                             const Floats& beta, const Floats& dy) {
  BatchNormReference r{Doubles(x.size()), Doubles(columns), Doubles(columns),
                       Doubles(columns),  Doubles(columns), Doubles(x.size())};
  const double n = static_cast<double>(rows);
  for (size_t c = 0; c < columns; ++c) {
    for (size_t i = c; i < x.size(); i += columns) r.mean[c] += x[i] / n;
    for (size_t i = c; i < x.size(); i += columns) {
      r.variance[c] += (x[i] - r.mean[c]) * (x[i] - r.mean[c]) / n;
    }
    const double inverse = 1 / std::sqrt(r.variance[c] + epsilon);
    for (size_t i = c; i < x.size(); i += columns) {
      const double normal = (x[i] - r.mean[c]) * inverse;
      r.y[i] = normal * gamma[c] + beta[c];
      r.dbeta[c] += dy[i];
      r.dgamma[c] += dy[i] * normal;
    }
    for (size_t i = c; i < x.size(); i += columns) {
      const double normal = (x[i] - r.mean[c]) * inverse;
      r.dx[i] = gamma[c] * inverse * (dy[i] - r.dbeta[c] / n - normal * r.dgamma[c] / n);
    }
  }
  return r;
}

}  // namespace leeway::testing
