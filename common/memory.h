// How a program that moves megabytes around wants its allocator.
#pragma once

#include <malloc.h>

namespace leeway {

// Once, at the start of a program. glibc by default gives every large buffer back to the kernel and
// faults it in again, page by page: that costs half of the exchange's throughput. The price is some
// tens of megabytes that stay with the process.
inline void TameMalloc() {
#if defined(__GLIBC__)
  constexpr int kKeepBytes = 64 << 20;
  // The largest that glibc takes.
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  mallopt(M_TRIM_THRESHOLD, kKeepBytes);
  mallopt(M_TOP_PAD, kKeepBytes);
  // What one thread receives another one frees: memory that is kept apart by thread is kept twice.
  mallopt(M_ARENA_MAX, 1);
#endif
}

}  // namespace leeway
