// Loops that vectorise although their output may be their input.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

// Before a `for`: no iteration reads what another one writes. True of every elementwise loop, also
// with out == in; without it the compiler's overlap check sends that case down the scalar path.
#if defined(__clang__)
#define LEEWAY_INDEPENDENT_ITERATIONS _Pragma("clang loop vectorize(assume_safety)")
#else
#define LEEWAY_INDEPENDENT_ITERATIONS _Pragma("GCC ivdep")
#endif

namespace leeway {

// One float, or eight, at any address: for loops that compilers do not vectorise by themselves.
// (As members, since a template argument would lose the attributes.)
struct OneFloat {
  using At = float __attribute__((aligned(1), may_alias));
  using Value = float;
};
struct EightFloats {
  using At = float __attribute__((vector_size(32), aligned(1), may_alias));
  using Value = float __attribute__((vector_size(32)));
};

// Whether floats are finite, seen one after the other in a loop: NaN and infinity, and no others,
// are at least infinity's bits once the sign is gone. Integer arithmetic, so that it vectorises and
// no floating-point option can change it.
class LargestMagnitude {
 public:
  void See(float value) { bits_ = std::max(bits_, std::bit_cast<int32_t>(value) & 0x7fffffff); }
  bool finite() const { return bits_ < 0x7f800000; }

 private:
  int32_t bits_ = 0;
};

// Floats of one cache line.
inline constexpr size_t kLineFloats = 16;

// Asks for values that will be read soon.
inline void Prefetch(const float* values, size_t count) {
  for (size_t i = 0; i < count; i += kLineFloats) __builtin_prefetch(values + i);
}

}  // namespace leeway
