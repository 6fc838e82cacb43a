// Group normalisation (Wu and He 2018) and layer normalisation (Ba, Kiros, Hinton 2016).
#include <algorithm>
#include <array>
#include <cmath>

#include "worker/compute/eigen/columns.h"
#include "worker/compute/eigen/eigen_backend.h"

namespace leeway {
namespace {

// Returns the sum of value(i) over [0, count), in float within a block and in double across blocks.
template <typename Value>
double Sum(size_t count, Value value) {
  constexpr size_t kLanes = 16;
  constexpr size_t kBlock = 1024;
  double total = 0;
  for (size_t i = 0; i < count;) {
    const size_t end = std::min(count, i + kBlock);
    std::array<float, kLanes> lanes{};
    for (; i + kLanes <= end; i += kLanes) {
      for (size_t lane = 0; lane < kLanes; ++lane) lanes[lane] += value(i + lane);
    }
    float block = 0;
    for (const float lane : lanes) block += lane;
    for (; i < end; ++i) block += value(i);
    total += block;
  }
  return total;
}

// Returns the sum of value(element of x, channel) over one group of one example.
template <typename Value>
double GroupSum(const GroupNormShape& shape, size_t mean, Value value) {
  const size_t width = shape.group_channels();
  const size_t channel = mean % shape.groups * width;
  const size_t first = mean / shape.groups * shape.pixels * shape.channels + channel;
  double total = 0;
  for (size_t pixel = 0; pixel < shape.pixels; ++pixel) {
    const size_t at = first + pixel * shape.channels;
    total += Sum(width, [&](size_t i) { return value(at + i, channel + i); });
  }
  return total;
}

// Calls body(element of x, channel) for each element of one group of one example.
template <typename Body>
void ForGroup(const GroupNormShape& shape, size_t mean, Body body) {
  const size_t width = shape.group_channels();
  const size_t channel = mean % shape.groups * width;
  const size_t first = mean / shape.groups * shape.pixels * shape.channels + channel;
  for (size_t pixel = 0; pixel < shape.pixels; ++pixel) {
    const size_t at = first + pixel * shape.channels;
    for (size_t i = 0; i < width; ++i) body(at + i, channel + i);
  }
}

size_t GroupGrain(const GroupNormShape& shape) {
  return std::max<size_t>(1, (1 << 14) / std::max<size_t>(1, shape.values()));
}

}  // namespace

void EigenBackend::GroupNormForward(const GroupNormShape& shape, const float* gamma,
                                    const float* beta, const float* x, float* saved, float* y) {
  const auto count = static_cast<double>(shape.values());
  pool_.For(shape.means(), GroupGrain(shape), [=, &shape](size_t begin, size_t end, uint32_t) {
    for (size_t m = begin; m < end; ++m) {
      const auto mean =
          static_cast<float>(GroupSum(shape, m, [=](size_t i, size_t) { return x[i]; }) / count);
      const double squares = GroupSum(shape, m, [=](size_t i, size_t) {
        const float deviation = x[i] - mean;
        return deviation * deviation;
      });
      const auto inverse = static_cast<float>(1.0 / std::sqrt(squares / count + shape.epsilon));
      saved[m] = mean;
      saved[shape.means() + m] = inverse;
      ForGroup(shape, m, [=](size_t i, size_t c) {
        y[i] = (x[i] - mean) * inverse * gamma[c] + (beta == nullptr ? 0.0f : beta[c]);
      });
    }
  });
}

void EigenBackend::GroupNormBackward(const GroupNormShape& shape, const float* gamma,
                                     const float* x, const float* saved, const float* dy, float*,
                                     float* dgamma, float* dbeta, float* dx) {
  const float* const means = saved;
  const float* const inverses = saved + shape.means();
  const size_t rows = shape.batch * shape.pixels;
  const size_t channels = shape.channels;
  SumColumns<2>(
      pool_, column_totals_, rows, channels,
      [=, &shape](size_t r, size_t c) {
        const size_t i = r * channels + c;
        const size_t m = r / shape.pixels * shape.groups + c / shape.group_channels();
        return std::array{dy[i], dy[i] * ((x[i] - means[m]) * inverses[m])};
      },
      [=](size_t c, const auto& sums) {
        if (dbeta != nullptr) dbeta[c] = static_cast<float>(sums[0]);
        dgamma[c] = static_cast<float>(sums[1]);
      });
  if (dx == nullptr) return;
  const auto count = static_cast<double>(shape.values());
  pool_.For(shape.means(), GroupGrain(shape), [=, &shape](size_t begin, size_t end, uint32_t) {
    for (size_t m = begin; m < end; ++m) {
      const float mean = means[m], inverse = inverses[m];
      const auto slope = static_cast<float>(
          GroupSum(shape, m, [=](size_t i, size_t c) { return dy[i] * gamma[c]; }) / count);
      const auto along =
          static_cast<float>(GroupSum(shape, m,
                                      [=](size_t i, size_t c) {
                                        return dy[i] * gamma[c] * ((x[i] - mean) * inverse);
                                      }) /
                             count);
      ForGroup(shape, m, [=](size_t i, size_t c) {
        const float normal = (x[i] - mean) * inverse;
        dx[i] = inverse * (dy[i] * gamma[c] - slope - normal * along);
      });
    }
  });
}

}  // namespace leeway
