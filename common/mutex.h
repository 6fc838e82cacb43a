// std::mutex with clang's thread-safety annotations. With them, access to a field without its lock
// is a compile error (-Wthread-safety). absl::Mutex is not used: the distribution builds it without
// instrumentation, and ThreadSanitizer would report races in it.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "absl/base/thread_annotations.h"

#if defined(__clang__)
#define LEEWAY_THREAD_ANNOTATION(x) __attribute__((x))
#else
#define LEEWAY_THREAD_ANNOTATION(x)
#endif

// Abseil defines some of these macros for its own use, with the same meaning.
#undef GUARDED_BY
#undef PT_GUARDED_BY
#undef NO_THREAD_SAFETY_ANALYSIS

#define CAPABILITY(x) LEEWAY_THREAD_ANNOTATION(capability(x))
#define SCOPED_CAPABILITY LEEWAY_THREAD_ANNOTATION(scoped_lockable)
#define GUARDED_BY(x) LEEWAY_THREAD_ANNOTATION(guarded_by(x))
#define PT_GUARDED_BY(x) LEEWAY_THREAD_ANNOTATION(pt_guarded_by(x))
#define REQUIRES(...) LEEWAY_THREAD_ANNOTATION(requires_capability(__VA_ARGS__))
#define EXCLUDES(...) LEEWAY_THREAD_ANNOTATION(locks_excluded(__VA_ARGS__))
#define ACQUIRE(...) LEEWAY_THREAD_ANNOTATION(acquire_capability(__VA_ARGS__))
#define RELEASE(...) LEEWAY_THREAD_ANNOTATION(release_capability(__VA_ARGS__))
#define NO_THREAD_SAFETY_ANALYSIS LEEWAY_THREAD_ANNOTATION(no_thread_safety_analysis)

namespace leeway {

class CAPABILITY("mutex") Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void Lock() ACQUIRE() { mutex_.lock(); }
  void Unlock() RELEASE() { mutex_.unlock(); }

 private:
  friend class CondVar;
  std::mutex mutex_;
};

class SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) ACQUIRE(mutex) : mutex_(mutex) { mutex_.Lock(); }
  ~MutexLock() RELEASE() { mutex_.Unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

// A condition variable without predicates, because the thread-safety analysis cannot look into a
// predicate. Callers wait in loops instead: `while (!ready_) cv_.WaitUntil(mutex_, deadline)`.
class CondVar {
 public:
  void Wait(Mutex& mutex) REQUIRES(mutex) NO_THREAD_SAFETY_ANALYSIS {
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
    condition_.wait(lock);
    lock.release();
  }

  // Waits for a notification. Returns false if the deadline has passed.
  bool WaitUntil(Mutex& mutex, std::chrono::steady_clock::time_point deadline)
      REQUIRES(mutex) NO_THREAD_SAFETY_ANALYSIS {
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
    const bool in_time = condition_.wait_until(lock, deadline) == std::cv_status::no_timeout;
    lock.release();
    return in_time;
  }

  void NotifyAll() { condition_.notify_all(); }
  void NotifyOne() { condition_.notify_one(); }

 private:
  std::condition_variable condition_;
};

}  // namespace leeway
