// A device's memory that the host cannot touch, although it is the host's.
#pragma once

#include <cstddef>
#include <map>
#include <memory>

#include "absl/status/statusor.h"

namespace leeway::testing {

// One piece of memory mapped twice: under the addresses that are handed out a read or write of the
// host faults (SIGSEGV; EFAULT in a system call); kernels work under others. Not thread-safe.
class SplitMemory {
 public:
  // The bits that new and freed memory holds, in every float: a NaN that no arithmetic makes, as a
  // float and, twice, as a double.
  static constexpr uint32_t kPoison = 0x7ff8deadu;

  static absl::StatusOr<std::unique_ptr<SplitMemory>> Make(size_t bytes);
  ~SplitMemory();
  SplitMemory(const SplitMemory&) = delete;
  SplitMemory& operator=(const SplitMemory&) = delete;

  // Poisoned; null where there is no room.
  float* Take(size_t count);
  // Its size in bytes.
  size_t SizeOf(const float* data) const { return taken_.at(data); }
  void GiveBack(float* data);

  bool Holds(const void* data, size_t bytes) const;
  // The same place, for kernels.
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
  // By address outside: bytes.
  std::map<const float*, size_t> taken_;
};

// Writes the poison, whatever lies there.
void Poison(void* data, size_t bytes);
// The first poisoned float of `count`, or `count`.
size_t FirstPoisoned(const float* data, size_t count);

}  // namespace leeway::testing
