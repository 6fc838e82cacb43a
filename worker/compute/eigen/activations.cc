// Activation functions. ReLUs are loops that the compiler vectorises. The others use Eigen's vector
// functions.
#include <algorithm>
#include <cmath>
#include <numbers>

#include <Eigen/Core>
#include <unsupported/Eigen/SpecialFunctions>

#include "worker/compute/eigen/eigen_backend.h"
#include "worker/compute/eigen/tiles.h"
#include "worker/compute/eigen/vectors.h"

namespace leeway {
namespace {

// The numbers of elements for which waking a thread is worthwhile.
constexpr size_t kReluGrain = 1 << 15;
constexpr size_t kTranscendentalGrain = 1 << 13;

// Computes out = function(in...).
template <typename Function, typename... In>
void MapFloats(ThreadPool& pool, size_t grain, size_t count, float* out, Function function,
               const In*... in) {
  pool.For(count, grain, [=](size_t begin, size_t end, uint32_t) {
    MapElements(begin, end, out, function, in...);
  });
}

// Computes out = function(in...), tile by tile.
template <typename Function, typename... In>
void MapTiles(ThreadPool& pool, size_t count, float* out, Function function, const In*... in) {
  pool.For(count, kTranscendentalGrain, [=](size_t begin, size_t end, uint32_t) {
    ForTiles(begin, end, [=](size_t i, size_t size) {
      const Tile result = function(ReadTile(in + i, size)...);
      std::copy_n(result.data(), size, out + i);
    });
  });
}

constexpr float kSqrtHalf = static_cast<float>(1 / std::numbers::sqrt2);
constexpr float kInvSqrtTwoPi = static_cast<float>(std::numbers::inv_sqrtpi / std::numbers::sqrt2);

// Computes the distribution function of the standard normal distribution.
Tile Phi(const Tile& x) { return 0.5f * (1.0f + (x * kSqrtHalf).erf()); }

// The argument of the tanh in GELU's approximation.
constexpr float kSqrtTwoOverPi = static_cast<float>(std::numbers::sqrt2 * std::numbers::inv_sqrtpi);
constexpr float kCubic = 0.044715f;
Tile TanhOf(const Tile& x) { return (kSqrtTwoOverPi * (x + kCubic * x * x * x)).tanh(); }

Tile Sigmoid(const Tile& x) { return 1.0f / (1.0f + (-x).exp()); }

constexpr auto kRelu = [](float x) { return x < 0.0f ? 0.0f : x; };
constexpr auto kReluSlope = [](float y, float dy) { return y > 0.0f ? dy : 0.0f; };
constexpr auto kRelu6 = [](float x) { return kRelu(x) > 6.0f ? 6.0f : kRelu(x); };
constexpr auto kRelu6Slope = [](float y, float dy) { return y < 6.0f ? kReluSlope(y, dy) : 0.0f; };
constexpr auto kTanh = [](const Tile& x) -> Tile { return x.tanh(); };
constexpr auto kTanhSlope = [](float y, float dy) { return dy * (1.0f - y * y); };
constexpr auto kGelu = [](const Tile& x) -> Tile { return x * Phi(x); };
constexpr auto kGeluSlope = [](const Tile& x, const Tile& dy) -> Tile {
  return dy * (Phi(x) + x * kInvSqrtTwoPi * (-0.5f * x * x).exp());
};
constexpr auto kTanhGelu = [](const Tile& x) -> Tile { return 0.5f * x * (1.0f + TanhOf(x)); };
constexpr auto kTanhGeluSlope = [](const Tile& x, const Tile& dy) -> Tile {
  const Tile tanh = TanhOf(x);
  const Tile inner = kSqrtTwoOverPi * (1.0f + 3.0f * kCubic * x * x);
  return dy * 0.5f * (1.0f + tanh + x * (1.0f - tanh * tanh) * inner);
};
constexpr auto kSilu = [](const Tile& x) -> Tile { return x * Sigmoid(x); };
constexpr auto kSiluSlope = [](const Tile& x, const Tile& dy) -> Tile {
  const Tile sigmoid = Sigmoid(x);
  return dy * (sigmoid * (1.0f + x * (1.0f - sigmoid)));
};

}  // namespace

void EigenBackend::ActivationForward(Activation activation, size_t count, const float* x,
                                     float* y) {
  switch (activation) {
    case Activation::kRelu:
      return MapFloats(pool_, kReluGrain, count, y, kRelu, x);
    case Activation::kRelu6:
      return MapFloats(pool_, kReluGrain, count, y, kRelu6, x);
    case Activation::kTanh:
      return MapTiles(pool_, count, y, kTanh, x);
    case Activation::kGelu:
      return MapTiles(pool_, count, y, kGelu, x);
    case Activation::kTanhGelu:
      return MapTiles(pool_, count, y, kTanhGelu, x);
    case Activation::kSilu:
      return MapTiles(pool_, count, y, kSilu, x);
  }
}

void EigenBackend::ActivationBackward(Activation activation, size_t count, const float* kept,
                                      const float* dy, float* dx) {
  switch (activation) {
    case Activation::kRelu:
      return MapFloats(pool_, kReluGrain, count, dx, kReluSlope, kept, dy);
    case Activation::kRelu6:
      return MapFloats(pool_, kReluGrain, count, dx, kRelu6Slope, kept, dy);
    case Activation::kTanh:
      return MapFloats(pool_, kTranscendentalGrain, count, dx, kTanhSlope, kept, dy);
    case Activation::kGelu:
      return MapTiles(pool_, count, dx, kGeluSlope, kept, dy);
    case Activation::kTanhGelu:
      return MapTiles(pool_, count, dx, kTanhGeluSlope, kept, dy);
    case Activation::kSilu:
      return MapTiles(pool_, count, dx, kSiluSlope, kept, dy);
  }
}

}  // namespace leeway
