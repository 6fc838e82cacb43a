// Group normalisation: the terms and outputs of its sums (columns.h), in which each mean is a
// column, and the kernels on single elements.
#pragma once

#include <cmath>
#include <cstddef>

#include "common/host_device.h"
#include "worker/compute/shapes.h"

namespace leeway::cuda {

// The shape of a group normalisation, as the numbers that kernels need.
struct GroupPlaces {
  static GroupPlaces Of(const GroupNormShape& shape) {
    return {shape.pixels, shape.channels, shape.groups, shape.group_channels()};
  }
  // Returns the index of value `row` of mean `column`.
  LEEWAY_HOST_DEVICE size_t Element(size_t row, size_t column) const {
    const size_t pixel = column / groups * pixels + row / width;
    return pixel * channels + Channel(row, column);
  }
  LEEWAY_HOST_DEVICE size_t Channel(size_t row, size_t column) const {
    return column % groups * width + row % width;
  }
  // Returns the index of element i's mean.
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
  // The shift of each channel. If null, 0 is used.
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

// A term of the sum that is dgamma. The rows are the pixels of all examples, and the columns are
// the channels.
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

// A term of the two sums that all input gradients of a group need. The first is the sum of dy
// gamma. The second, with `along`, is the sum of dy gamma times the normalised value.
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
  // The two sums of each mean, divided by the number of the mean's values.
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
