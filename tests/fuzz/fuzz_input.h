// Turns a fuzz target's bytes into values, and reports a broken promise.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace leeway {

// Deals the bytes out from the front; beyond the end there are zeros, so that every input has a
// meaning. Each field is one or a few bytes of the input, so that mutating bytes mutates fields.
class FuzzInput {
 public:
  FuzzInput(const uint8_t* data, size_t size) : rest_(data, size) {}

  bool empty() const { return rest_.empty(); }
  size_t left() const { return rest_.size(); }
  uint8_t Byte() {
    const std::span<const uint8_t> byte = Take(1);
    return byte.empty() ? 0 : byte[0];
  }
  bool Flag() { return (Byte() & 1) != 0; }
  // Returns a number in [0, limit), with limit <= 256.
  uint32_t Below(uint32_t limit) { return Byte() % limit; }
  uint32_t Short() { return Byte() | uint32_t{Byte()} << 8; }
  // Returns mostly small numbers; sometimes any number, including the largest.
  uint64_t Number() {
    const uint8_t byte = Byte();
    if (byte < 0xf0) return byte;
    if (byte == 0xff) return UINT64_MAX;
    uint64_t value = 0;
    const std::span<const uint8_t> bytes = Take(sizeof(value));
    std::memcpy(&value, bytes.data(), bytes.size());
    return value;
  }
  // Returns the next `bytes` bytes, or what is left.
  std::span<const uint8_t> Take(size_t bytes) {
    const std::span<const uint8_t> taken = rest_.first(std::min(bytes, rest_.size()));
    rest_ = rest_.subspan(taken.size());
    return taken;
  }
  std::span<const uint8_t> Rest() { return Take(rest_.size()); }

 private:
  std::span<const uint8_t> rest_;
};

inline std::string TextOf(std::span<const uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Returns the same memory, so that a read beyond it is found.
inline std::string_view ViewOf(std::span<const uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Checks a promise that a header makes. A broken promise is what the fuzzer looks for: it ends the
// process.
inline void Promise(bool kept, std::string_view what) {
  if (kept) return;
  std::fprintf(stderr, "broken promise: %.*s\n", static_cast<int>(what.size()), what.data());
  __builtin_trap();
}
inline void PromiseOk(const absl::Status& status, std::string_view what) {
  if (!status.ok()) Promise(false, std::string(what) + ": " + status.ToString());
}

// A target in a program that has all of them.
struct FuzzTarget {
  FuzzTarget(const char* name, void (*run)(FuzzInput& input)) : name(name), run(run), next(first) {
    first = this;
  }
  const char* const name;
  void (*const run)(FuzzInput& input);
  const FuzzTarget* const next;
  static inline const FuzzTarget* first = nullptr;
};

}  // namespace leeway

// FUZZ_TARGET(wire) { ... }, once in each file, in a namespace of its own: the body uses `input`.
// With LEEWAY_FUZZ the program has only this target, and libFuzzer calls it. Otherwise replay.cc
// does.
#if defined(LEEWAY_FUZZ)
#define FUZZ_TARGET(NAME)                                                   \
  void Fuzz(FuzzInput& input);                                              \
  extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) { \
    FuzzInput input(data, size);                                            \
    Fuzz(input);                                                            \
    return 0;                                                               \
  }                                                                         \
  void Fuzz(FuzzInput& input)
#else
#define FUZZ_TARGET(NAME)                    \
  void Fuzz(FuzzInput& input);               \
  const FuzzTarget fuzz_target(#NAME, Fuzz); \
  void Fuzz(FuzzInput& input)
#endif
