// Compares floats by their bits, so that a NaN equals itself and 0 differs from -0.
#pragma once

#include <cstring>
#include <span>

namespace leeway::testing {

inline bool SameBits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size_bytes()) == 0);
}

}  // namespace leeway::testing
