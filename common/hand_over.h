// Marks objects that pass from one thread to another through a library without instrumentation
// (gRPC). The library synchronises the two threads, but ThreadSanitizer cannot see that. These
// functions inform ThreadSanitizer. In other builds they do nothing.
#pragma once

#include "absl/base/config.h"

#ifdef ABSL_HAVE_THREAD_SANITIZER
#include <sanitizer/tsan_interface.h>
#endif

namespace leeway {

// Call this function on the first thread, before it passes `what` to the library.
inline void HandOver([[maybe_unused]] void* what) {
#ifdef ABSL_HAVE_THREAD_SANITIZER
  __tsan_release(what);
#endif
}

// Call this function on the thread that receives `what` from the library, before its first use.
inline void TakeOver([[maybe_unused]] void* what) {
#ifdef ABSL_HAVE_THREAD_SANITIZER
  __tsan_acquire(what);
#endif
}

}  // namespace leeway
