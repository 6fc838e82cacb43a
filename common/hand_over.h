// What passes from one thread to another through a library that is not instrumented (gRPC): the
// library orders the two, and ThreadSanitizer is told so here. Nothing without it.
#pragma once

#include "absl/base/config.h"

#ifdef ABSL_HAVE_THREAD_SANITIZER
#include <sanitizer/tsan_interface.h>
#endif

namespace leeway {

// By the thread that gives `what` to the library, before it does.
inline void HandOver([[maybe_unused]] void* what) {
#ifdef ABSL_HAVE_THREAD_SANITIZER
  __tsan_release(what);
#endif
}

// By the thread that has it from the library, before it looks into it.
inline void TakeOver([[maybe_unused]] void* what) {
#ifdef ABSL_HAVE_THREAD_SANITIZER
  __tsan_acquire(what);
#endif
}

}  // namespace leeway
