// Lets another thread break off a call that is repeated until it is answered.
#pragma once

#include <chrono>

#include <grpcpp/client_context.h>

#include "common/clock.h"
#include "common/mutex.h"

namespace leeway {

// Serves one call at a time. Thread-safe.
class CallBreaker {
 public:
  // Ends the attempt or pause in progress at once. Every later attempt or pause ends at once, too.
  void Break() EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    broken_ = true;
    if (attempt_ != nullptr) attempt_->TryCancel();
    changed_.NotifyAll();
  }
  bool broken() const EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return broken_;
  }

  // Call this before an attempt with `context`, and call End() after the attempt. Returns false if
  // the attempt must not be made.
  bool Begin(grpc::ClientContext* context) EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    if (!broken_) attempt_ = context;
    return !broken_;
  }
  void End() EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    attempt_ = nullptr;
  }
  void Pause(Duration duration) EXCLUDES(mutex_) {
    const Time end = std::chrono::steady_clock::now() + duration;
    MutexLock lock(mutex_);
    while (!broken_ && changed_.WaitUntil(mutex_, end)) {
    }
  }

 private:
  mutable Mutex mutex_;
  CondVar changed_;
  bool broken_ GUARDED_BY(mutex_) = false;
  grpc::ClientContext* attempt_ GUARDED_BY(mutex_) = nullptr;
};

}  // namespace leeway
