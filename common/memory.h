// How a program that moves megabytes around wants its allocator.
#pragma once

#include <malloc.h>

namespace leeway {

// The largest threshold that glibc takes, and what stays with the process.
inline constexpr int kMmapThreshold = 32 << 20;
inline constexpr int kKeptBytes = 64 << 20;

// Once, at the start of a program. glibc by default gives every large buffer back to the kernel and
// faults it in again, page by page: that costs half of the exchange's throughput. The price is some
// tens of megabytes that stay with the process.
inline void TameMalloc() {
#if defined(__GLIBC__)
  mallopt(M_MMAP_THRESHOLD, kMmapThreshold);
  mallopt(M_TRIM_THRESHOLD, kKeptBytes);
  mallopt(M_TOP_PAD, kKeptBytes);
  // What one thread receives another one frees: memory that is kept apart by thread is kept twice.
  mallopt(M_ARENA_MAX, 1);
#endif
}

}  // namespace leeway
