// Loops that vectorise even if their output is their input.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

// Put this macro before a `for` loop in which no iteration reads what another iteration writes.
// Every elementwise loop qualifies, even with out == in. Without the pragma, the compiler checks
// for overlap and runs scalar code if out == in.
#if defined(__clang__)
#define LEEWAY_INDEPENDENT_ITERATIONS _Pragma("clang loop vectorize(assume_safety)")
#else
#define LEEWAY_INDEPENDENT_ITERATIONS _Pragma("GCC ivdep")
#endif

namespace leeway {

// Loads and stores one float, or eight, at any address, for loops that compilers do not vectorise
// by themselves. The values are copied, which compiles to one instruction. A vector type with a
// lower alignment is not used instead, because g++ and clang declare it differently, and differ in
// whether a template keeps the alignment.
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

// Checks whether the floats seen in a loop are all finite. A value is NaN or infinity exactly if
// its bits, without the sign, are at least the bits of infinity. The check compares integers, which
// vectorises and which no floating-point option can change.
class LargestMagnitude {
 public:
  void See(float value) { bits_ = std::max(bits_, std::bit_cast<int32_t>(value) & 0x7fffffff); }
  bool finite() const { return bits_ < 0x7f800000; }

 private:
  int32_t bits_ = 0;
};

// The number of floats in one cache line.
inline constexpr size_t kLineFloats = 16;

// Prefetch fetches values that will be read soon; PrefetchToWrite fetches memory that will be
// written.
inline void Prefetch(const float* values, size_t count) {
  for (size_t i = 0; i < count; i += kLineFloats) __builtin_prefetch(values + i);
}
inline void PrefetchToWrite(float* values, size_t count) {
  for (size_t i = 0; i < count; i += kLineFloats) __builtin_prefetch(values + i, 1);
}

}  // namespace leeway
