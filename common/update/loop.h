// Loops that vectorise although their output may be their input.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

// Before a `for`: no iteration reads what another one writes. True of every elementwise loop, also
// with out == in; without it the compiler's overlap check sends that case down the scalar path.
#if defined(__clang__)
#define LEEWAY_INDEPENDENT_ITERATIONS _Pragma("clang loop vectorize(assume_safety)")
#else
#define LEEWAY_INDEPENDENT_ITERATIONS _Pragma("GCC ivdep")
#endif

namespace leeway {

// One float, or eight, at any address: for loops that compilers do not vectorise by themselves.
// (Copied, which is one instruction: how a type's alignment is lowered, and whether a template
// keeps that, is a thing on which g++ and clang differ.)
struct OneFloat {
  using Value = float;
  static Value Load(const void* at) {
    Value value;
    std::memcpy(&value, at, sizeof(value));
    return value;
  }
  static void Store(Value value, void* at) { std::memcpy(at, &value, sizeof(value)); }
};
struct EightFloats {
  using Value = float __attribute__((vector_size(32)));
  static Value Load(const void* at) {
    Value value;
    std::memcpy(&value, at, sizeof(value));
    return value;
  }
  static void Store(Value value, void* at) { std::memcpy(at, &value, sizeof(value)); }
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

// Asks for values that will be read soon; for room that will be written.
inline void Prefetch(const float* values, size_t count) {
  for (size_t i = 0; i < count; i += kLineFloats) __builtin_prefetch(values + i);
}
inline void PrefetchToWrite(float* values, size_t count) {
  for (size_t i = 0; i < count; i += kLineFloats) __builtin_prefetch(values + i, 1);
}

}  // namespace leeway
