// GELU, SiLU and tanh by Eigen's vector functions.
#include <algorithm>
#include <cmath>
#include <numbers>

#include <Eigen/Core>
#include <unsupported/Eigen/SpecialFunctions>

#include "worker/compute/eigen/eigen_backend.h"
#include "worker/compute/eigen/vectors.h"

namespace leeway {
namespace {

constexpr size_t kGrain = 1 << 13;

// Eigen computes the ends of an unaligned array by the scalar functions, which round otherwise than
// the vector ones. So values go through aligned tiles, all of which are vectors whatever the
// address.
constexpr int kTile = 64;
using Tile = Eigen::Array<float, kTile, 1>;

Tile Read(const float* x, size_t count) {
  Tile tile = Tile::Zero();
  std::copy_n(x, count, tile.data());
  return tile;
}

// y = function(x)
template <typename Function>
void MapTiles(ThreadPool& pool, size_t count, const float* x, float* y, Function function) {
  pool.For(count, kGrain, [=](size_t begin, size_t end, uint32_t) {
    for (size_t i = begin; i < end; i += kTile) {
      const size_t size = std::min<size_t>(kTile, end - i);
      const Tile result = function(Read(x + i, size));
      std::copy_n(result.data(), size, y + i);
    }
  });
}

// z = function(x, y)
template <typename Function>
void MapTiles(ThreadPool& pool, size_t count, const float* x, const float* y, float* z,
              Function function) {
  pool.For(count, kGrain, [=](size_t begin, size_t end, uint32_t) {
    for (size_t i = begin; i < end; i += kTile) {
      const size_t size = std::min<size_t>(kTile, end - i);
      const Tile result = function(Read(x + i, size), Read(y + i, size));
      std::copy_n(result.data(), size, z + i);
    }
  });
}

constexpr float kSqrtHalf = static_cast<float>(1 / std::numbers::sqrt2);
constexpr float kInvSqrtTwoPi = static_cast<float>(std::numbers::inv_sqrtpi / std::numbers::sqrt2);

// The standard normal's distribution function.
Tile Phi(const Tile& x) { return 0.5f * (1.0f + (x * kSqrtHalf).erf()); }

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
  pool_.For(count, kGrain, [=](size_t begin, size_t end, uint32_t) {
    MapElements(
        begin, end, dx, [](float y, float dy) { return dy * (1.0f - y * y); }, y, dy);
  });
}

}  // namespace leeway
