// Settings of the allocator for a program that moves megabytes around.
#pragma once

#include <malloc.h>

namespace leeway {

// The largest threshold that glibc accepts, and the memory that stays with the process.
inline constexpr int kMmapThreshold = 32 << 20;
inline constexpr int kKeptBytes = 64 << 20;

// Call it once, at the start of a program. By default glibc returns each large buffer to the kernel
// and then faults it in again, page by page, which costs half of the exchange's throughput. With
// these settings some tens of megabytes stay with the process.
inline void TameMalloc() {
#if defined(__GLIBC__)
  mallopt(M_MMAP_THRESHOLD, kMmapThreshold);
  mallopt(M_TRIM_THRESHOLD, kKeptBytes);
  mallopt(M_TOP_PAD, kKeptBytes);
  // One thread receives buffers that another one frees, so memory kept for each thread would be
  // kept twice.
  mallopt(M_ARENA_MAX, 1);
#endif
}

}  // namespace leeway
