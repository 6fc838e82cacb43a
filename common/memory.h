// Settings of the allocator for a program that moves megabytes around.
#pragma once

#include <malloc.h>

namespace leeway {

// Buffers below this size are allocated on the heap, so freeing them does not unmap them. It is the
// largest threshold that glibc accepts.
inline constexpr int kMmapThreshold = 32 << 20;
// How many bytes of free memory glibc keeps at the top of the heap, and does not return to the
// kernel.
inline constexpr int kKeptBytes = 64 << 20;

// Call this function once, at the start of a program. By default glibc returns each large buffer to
// the kernel, and the next buffer is faulted in again, page by page. That costs half of the
// exchange's throughput. With these settings the process keeps some tens of megabytes.
inline void TameMalloc() {
#if defined(__GLIBC__)
  mallopt(M_MMAP_THRESHOLD, kMmapThreshold);
  mallopt(M_TRIM_THRESHOLD, kKeptBytes);
  mallopt(M_TOP_PAD, kKeptBytes);
  // Use one arena. One thread allocates buffers that another thread frees, so with an arena for
  // each thread the free memory would be kept twice.
  mallopt(M_ARENA_MAX, 1);
#endif
}

}  // namespace leeway
