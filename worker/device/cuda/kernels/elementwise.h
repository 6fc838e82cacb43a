// Bodies of kernels on single elements: Fill, activations, and sums of two vectors. A body is a
// function of an index; launch.h runs the body for all indices.
#pragma once

#include <cmath>
#include <cstddef>

#include "common/host_device.h"

namespace leeway::cuda {

// Computes out[i] = function(in[i]...); `out` may be any of the inputs.
template <typename Function>
struct Map1 {
  Function function;
  const float* x;
  float* out;
  LEEWAY_HOST_DEVICE void operator()(size_t i) const { out[i] = function(x[i]); }
};
template <typename Function>
struct Map2 {
  Function function;
  const float* x;
  const float* y;
  float* out;
  LEEWAY_HOST_DEVICE void operator()(size_t i) const { out[i] = function(x[i], y[i]); }
};

struct Constant {
  float value;
  float* y;
  LEEWAY_HOST_DEVICE void operator()(size_t i) const { y[i] = value; }
};

// Sets each row of y to `row`, or adds `row` to each row of y.
struct RowToAll {
  size_t columns;
  const float* row;
  bool add;
  float* y;
  LEEWAY_HOST_DEVICE void operator()(size_t i) const {
    const float value = row[i % columns];
    y[i] = add ? y[i] + value : value;
  }
};

// Writes zeros into a matrix whose rows are `stride` floats apart.
struct ZeroRows {
  size_t columns;
  size_t stride;
  float* y;
  LEEWAY_HOST_DEVICE void operator()(size_t i) const { y[i / columns * stride + i % columns] = 0; }
};

// Copies some columns of a matrix to columns of another matrix.
struct CopiedColumns {
  size_t columns;
  size_t from_stride;
  size_t to_stride;
  const float* x;
  float* y;
  LEEWAY_HOST_DEVICE void operator()(size_t i) const {
    const size_t row = i / columns;
    const size_t column = i % columns;
    y[row * to_stride + column] = x[row * from_stride + column];
  }
};

struct Difference {
  float scale;
  const float* a;
  const float* b;
  // The vector that is added. If null, 0 is used.
  const float* base;
  float* out;
  LEEWAY_HOST_DEVICE void operator()(size_t i) const {
    const float difference = scale * (a[i] - b[i]);
    out[i] = base == nullptr ? difference : base[i] + difference;
  }
};

struct Product {
  LEEWAY_HOST_DEVICE float operator()(float x, float y) const { return x * y; }
};

// Computes max(x, 0). NaN stays NaN.
struct Relu {
  LEEWAY_HOST_DEVICE float operator()(float x) const { return x < 0.0f ? 0.0f : x; }
};
struct ReluSlope {
  LEEWAY_HOST_DEVICE float operator()(float y, float dy) const { return y > 0.0f ? dy : 0.0f; }
};

// Returns the distribution function of the standard normal distribution.
LEEWAY_HOST_DEVICE inline float NormalCdf(float x) {
  constexpr float kSqrtHalf = 0.70710678118654752440f;
  return 0.5f * (1.0f + erff(x * kSqrtHalf));
}
struct Gelu {
  LEEWAY_HOST_DEVICE float operator()(float x) const { return x * NormalCdf(x); }
};
struct GeluSlope {
  LEEWAY_HOST_DEVICE float operator()(float x, float dy) const {
    constexpr float kInvSqrtTwoPi = 0.39894228040143267794f;
    return dy * (NormalCdf(x) + x * kInvSqrtTwoPi * expf(-0.5f * x * x));
  }
};
// Returns the argument of the tanh in GELU's approximation.
LEEWAY_HOST_DEVICE inline float TanhGeluArgument(float x) {
  constexpr float kSqrtTwoOverPi = 0.79788456080286535588f;
  return kSqrtTwoOverPi * (x + 0.044715f * x * x * x);
}
struct TanhGelu {
  LEEWAY_HOST_DEVICE float operator()(float x) const {
    return 0.5f * x * (1.0f + tanhf(TanhGeluArgument(x)));
  }
};
struct TanhGeluSlope {
  LEEWAY_HOST_DEVICE float operator()(float x, float dy) const {
    constexpr float kSqrtTwoOverPi = 0.79788456080286535588f;
    const float tanh = tanhf(TanhGeluArgument(x));
    const float inner = kSqrtTwoOverPi * (1.0f + 3.0f * 0.044715f * x * x);
    return dy * 0.5f * (1.0f + tanh + x * (1.0f - tanh * tanh) * inner);
  }
};
struct Relu6 {
  LEEWAY_HOST_DEVICE float operator()(float x) const {
    const float above = x < 0.0f ? 0.0f : x;
    return above > 6.0f ? 6.0f : above;
  }
};
struct Relu6Slope {
  LEEWAY_HOST_DEVICE float operator()(float y, float dy) const {
    return y > 0.0f && y < 6.0f ? dy : 0.0f;
  }
};
LEEWAY_HOST_DEVICE inline float Sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }
struct Silu {
  LEEWAY_HOST_DEVICE float operator()(float x) const { return x * Sigmoid(x); }
};
struct SiluSlope {
  LEEWAY_HOST_DEVICE float operator()(float x, float dy) const {
    const float sigmoid = Sigmoid(x);
    return dy * (sigmoid * (1.0f + x * (1.0f - sigmoid)));
  }
};
struct Tanh {
  LEEWAY_HOST_DEVICE float operator()(float x) const { return tanhf(x); }
};
struct TanhSlope {
  LEEWAY_HOST_DEVICE float operator()(float y, float dy) const { return dy * (1.0f - y * y); }
};

}  // namespace leeway::cuda
