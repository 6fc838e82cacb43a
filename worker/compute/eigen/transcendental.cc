// GELU, SiLU and tanh with Eigen's vector functions.
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

constexpr size_t kTranscendentalGrain = 1 << 13;

// Computes y = function(x).
template <typename Function>
void MapTiles(ThreadPool& pool, size_t count, const float* x, float* y, Function function) {
  pool.For(count, kTranscendentalGrain, [=](size_t begin, size_t end, uint32_t) {
    ForTiles(begin, end, [=](size_t i, size_t size) {
      const Tile result = function(ReadTile(x + i, size));
      std::copy_n(result.data(), size, y + i);
    });
  });
}

// Computes z = function(x, y).
template <typename Function>
void MapTiles(ThreadPool& pool, size_t count, const float* x, const float* y, float* z,
              Function function) {
  pool.For(count, kTranscendentalGrain, [=](size_t begin, size_t end, uint32_t) {
    ForTiles(begin, end, [=](size_t i, size_t size) {
      const Tile result = function(ReadTile(x + i, size), ReadTile(y + i, size));
      std::copy_n(result.data(), size, z + i);
    });
  });
}

constexpr float kSqrtHalf = static_cast<float>(1 / std::numbers::sqrt2);
constexpr float kInvSqrtTwoPi = static_cast<float>(std::numbers::inv_sqrtpi / std::numbers::sqrt2);

// The distribution function of the standard normal distribution.
Tile Phi(const Tile& x) { return 0.5f * (1.0f + (x * kSqrtHalf).erf()); }

// The argument of the tanh in GELU's approximation.
constexpr float kSqrtTwoOverPi = static_cast<float>(std::numbers::sqrt2 * std::numbers::inv_sqrtpi);
constexpr float kCubic = 0.044715f;
Tile TanhOf(const Tile& x) { return (kSqrtTwoOverPi * (x + kCubic * x * x * x)).tanh(); }

Tile Sigmoid(const Tile& x) { return 1.0f / (1.0f + (-x).exp()); }

}  // namespace

void EigenBackend::GeluForward(size_t count, const float* x, float* y) {
  MapTiles(pool_, count, x, y, [](const Tile& x) -> Tile { return x * Phi(x); });
}

void EigenBackend::GeluBackward(size_t count, const float* x, const float* dy, float* dx) {
  MapTiles(pool_, count, x, dy, dx, [](const Tile& x, const Tile& dy) -> Tile {
    return dy * (Phi(x) + x * kInvSqrtTwoPi * (-0.5f * x * x).exp());
  });
}

void EigenBackend::TanhGeluForward(size_t count, const float* x, float* y) {
  MapTiles(pool_, count, x, y, [](const Tile& x) -> Tile { return 0.5f * x * (1.0f + TanhOf(x)); });
}

void EigenBackend::TanhGeluBackward(size_t count, const float* x, const float* dy, float* dx) {
  MapTiles(pool_, count, x, dy, dx, [](const Tile& x, const Tile& dy) -> Tile {
    const Tile tanh = TanhOf(x);
    const Tile inner = kSqrtTwoOverPi * (1.0f + 3.0f * kCubic * x * x);
    return dy * 0.5f * (1.0f + tanh + x * (1.0f - tanh * tanh) * inner);
  });
}

void EigenBackend::SiluForward(size_t count, const float* x, float* y) {
  MapTiles(pool_, count, x, y, [](const Tile& x) -> Tile { return x * Sigmoid(x); });
}

void EigenBackend::SiluBackward(size_t count, const float* x, const float* dy, float* dx) {
  MapTiles(pool_, count, x, dy, dx, [](const Tile& x, const Tile& dy) -> Tile {
    const Tile sigmoid = Sigmoid(x);
    return dy * (sigmoid * (1.0f + x * (1.0f - sigmoid)));
  });
}

void EigenBackend::TanhForward(size_t count, const float* x, float* y) {
  MapTiles(pool_, count, x, y, [](const Tile& x) -> Tile { return x.tanh(); });
}

void EigenBackend::TanhBackward(size_t count, const float* y, const float* dy, float* dx) {
  pool_.For(count, kTranscendentalGrain, [=](size_t begin, size_t end, uint32_t) {
    MapElements(
        begin, end, dx, [](float y, float dy) { return dy * (1.0f - y * y); }, y, dy);
  });
}

}  // namespace leeway
