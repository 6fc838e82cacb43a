// A device's memory that the host's code cannot touch, although it is host memory.
#pragma once

#include <cstddef>
#include <map>
#include <memory>

#include "absl/status/statusor.h"

namespace leeway::testing {

// Each piece of memory is mapped twice. At the addresses that are handed out, a read or write by
// the host faults (SIGSEGV; EFAULT in a system call). Kernels use the other addresses. Not
// thread-safe.
class SplitMemory {
 public:
  // The bits of new and freed memory, in every float. As a float, and twice as a double, they are a
  // NaN that arithmetic never produces.
  static constexpr uint32_t kPoison = 0x7ff8deadu;

  static absl::StatusOr<std::unique_ptr<SplitMemory>> Make(size_t bytes);
  ~SplitMemory();
  SplitMemory(const SplitMemory&) = delete;
  SplitMemory& operator=(const SplitMemory&) = delete;

  // Returns poisoned memory; null if there is no room.
  float* Take(size_t count);
  // Its size in bytes.
  size_t SizeOf(const float* data) const { return taken_.at(data); }
  void GiveBack(float* data);

  bool Holds(const void* data, size_t bytes) const;
  // Returns the same place as kernels address it.
  template <typename T>
  T* Inside(T* data) const {
    if (data == nullptr) return nullptr;
    return reinterpret_cast<T*>(reinterpret_cast<uintptr_t>(data) -
                                reinterpret_cast<uintptr_t>(outside_) +
                                reinterpret_cast<uintptr_t>(inside_));
  }

 private:
  SplitMemory(size_t bytes, char* outside, char* inside)
      : bytes_(bytes), outside_(outside), inside_(inside) {}

  const size_t bytes_;
  char* const outside_;
  char* const inside_;
  // By the address outside: the number of bytes.
  std::map<const float*, size_t> taken_;
};

// Overwrites the memory with the poison.
void Poison(void* data, size_t bytes);
// Returns the index of the first poisoned float of `count`; `count` if no float is poisoned.
size_t FirstPoisoned(const float* data, size_t count);

}  // namespace leeway::testing
