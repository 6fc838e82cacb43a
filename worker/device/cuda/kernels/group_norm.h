// Group normalisation: the terms and sinks of its sums (columns.h), with one column for each mean,
// and the kernels on single elements.
#pragma once

#include <cmath>
#include <cstddef>

#include "common/host_device.h"
#include "worker/compute/shapes.h"

namespace leeway::cuda {

// The shape of a group normalisation, in the numbers that kernels need.
struct GroupPlaces {
  static GroupPlaces Of(const GroupNormShape& shape) {
    return {shape.pixels, shape.channels, shape.groups, shape.group_channels()};
  }
  // The index of value `row` of mean `column`.
  LEEWAY_HOST_DEVICE size_t Element(size_t row, size_t column) const {
    const size_t pixel = column / groups * pixels + row / width;
    return pixel * channels + Channel(row, column);
  }
  LEEWAY_HOST_DEVICE size_t Channel(size_t row, size_t column) const {
    return column % groups * width + row % width;
  }
  // The index of element i's mean.
  LEEWAY_HOST_DEVICE size_t Mean(size_t i) const {
    return i / channels / pixels * groups + i % channels / width;
  }

  size_t pixels;
  size_t channels;
  size_t groups;
  // The number of channels of a group.
  size_t width;
};

struct GroupValue {
  GroupPlaces places;
  const float* x;
  LEEWAY_HOST_DEVICE float operator()(size_t row, size_t column) const {
    return x[places.Element(row, column)];
  }
};
struct ShareSink {
  double count;
  float* out;
  LEEWAY_HOST_DEVICE void operator()(size_t column, double total) const {
    out[column] = static_cast<float>(total / count);
  }
};

struct GroupSquaredDeviation {
  GroupPlaces places;
  const float* x;
  const float* means;
  LEEWAY_HOST_DEVICE float operator()(size_t row, size_t column) const {
    const float deviation = x[places.Element(row, column)] - means[column];
    return deviation * deviation;
  }
};
struct InverseSink {
  double count;
  float epsilon;
  float* inverses;
  LEEWAY_HOST_DEVICE void operator()(size_t column, double total) const {
    inverses[column] = static_cast<float>(1.0 / sqrt(total / count + epsilon));
  }
};

struct GroupNormalize {
  GroupPlaces places;
  const float* gamma;
  // If it is null, 0 is used.
  const float* beta;
  const float* means;
  const float* inverses;
  const float* x;
  float* y;
  LEEWAY_HOST_DEVICE void operator()(size_t i) const {
    const size_t m = places.Mean(i);
    const size_t c = i % places.channels;
    y[i] = (x[i] - means[m]) * inverses[m] * gamma[c] + (beta == nullptr ? 0.0f : beta[c]);
  }
};

// A term of dgamma's sum. Rows are the pixels of all examples, columns are channels.
struct GroupNormalTerm {
  GroupPlaces places;
  const float* means;
  const float* inverses;
  const float* x;
  const float* dy;
  LEEWAY_HOST_DEVICE float operator()(size_t row, size_t c) const {
    const size_t i = row * places.channels + c;
    const size_t m = places.Mean(i);
    return dy[i] * ((x[i] - means[m]) * inverses[m]);
  }
};

// A term of the sums that all slopes of a group need: the sum of dy gamma, or, with `along`, of dy
// gamma times the normalised value.
struct GroupSlopeTerm {
  GroupPlaces places;
  bool along;
  const float* gamma;
  const float* means;
  const float* inverses;
  const float* x;
  const float* dy;
  LEEWAY_HOST_DEVICE float operator()(size_t row, size_t column) const {
    const size_t i = places.Element(row, column);
    const float slope = dy[i] * gamma[places.Channel(row, column)];
    return along ? slope * ((x[i] - means[column]) * inverses[column]) : slope;
  }
};

struct GroupNormSlope {
  GroupPlaces places;
  const float* gamma;
  const float* means;
  const float* inverses;
  // The sums of each mean, divided by the number of its values.
  const float* slopes;
  const float* alongs;
  const float* x;
  const float* dy;
  float* dx;
  LEEWAY_HOST_DEVICE void operator()(size_t i) const {
    const size_t m = places.Mean(i);
    const float normal = (x[i] - means[m]) * inverses[m];
    dx[i] = inverses[m] * (dy[i] * gamma[i % places.channels] - slopes[m] - normal * alongs[m]);
  }
};

}  // namespace leeway::cuda
