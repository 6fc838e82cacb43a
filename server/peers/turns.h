// Runs pieces of work one after the other, in the order in which threads bring them. A thread that
// brings work runs it, and all work that comes meanwhile, unless another thread is doing so
// already. No lock is held while work runs.
#pragma once

#include <deque>
#include <functional>
#include <utility>

#include "common/mutex.h"

namespace leeway {

// Thread-safe.
class Turns {
 public:
  // Runs `work` now, or lets the thread that is running work run it next.
  void Take(std::function<void()> work) {
    {
      MutexLock lock(mutex_);
      work_.push_back(std::move(work));
      if (std::exchange(running_, true)) return;
    }
    while (const std::function<void()> next = Next()) next();
  }

 private:
  // Returns null if there is no more work.
  std::function<void()> Next() {
    MutexLock lock(mutex_);
    if (work_.empty()) {
      running_ = false;
      return nullptr;
    }
    std::function<void()> next = std::move(work_.front());
    work_.pop_front();
    return next;
  }

  Mutex mutex_;
  bool running_ GUARDED_BY(mutex_) = false;
  std::deque<std::function<void()>> work_ GUARDED_BY(mutex_);
};

}  // namespace leeway
