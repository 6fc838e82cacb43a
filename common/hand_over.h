// Marks objects that pass between threads through a library without instrumentation (gRPC). The
// library orders the two threads, and these functions tell ThreadSanitizer so. Without
// ThreadSanitizer they do nothing.
#pragma once

#include "absl/base/config.h"

#ifdef ABSL_HAVE_THREAD_SANITIZER
#include <sanitizer/tsan_interface.h>
#endif

namespace leeway {

// The thread that gives `what` to the library calls this before it does.
inline void HandOver([[maybe_unused]] void* what) {
#ifdef ABSL_HAVE_THREAD_SANITIZER
  __tsan_release(what);
#endif
}

// The thread that gets `what` from the library calls this before it uses the object.
inline void TakeOver([[maybe_unused]] void* what) {
#ifdef ABSL_HAVE_THREAD_SANITIZER
  __tsan_acquire(what);
#endif
}

}  // namespace leeway
