// The arithmetic of the raw limits. No update can do less.
#pragma once

#include <cstddef>
#include <span>

#include "common/update/loop.h"

namespace leeway {

// Computes y += a x. x has at least as many values as y.
inline void AddScaled(float a, std::span<const float> x, std::span<float> y) {
  const float* const from = x.data();
  float* const to = y.data();
  LEEWAY_INDEPENDENT_ITERATIONS
  for (size_t i = 0; i < y.size(); ++i) to[i] += a * from[i];
}

}  // namespace leeway
