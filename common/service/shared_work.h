// Work in parts that several threads take from, each the next part that nobody has.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "common/mutex.h"

namespace leeway {

// Thread-safe.
class SharedWork {
 public:
  // `run` is called once for each of 0 to `parts` - 1.
  SharedWork(uint64_t parts, std::function<void(uint64_t)> run)
      : parts_(parts), run_(std::move(run)) {}

  // Runs the next part; false: there was none left.
  bool RunNext() {
    const uint64_t part = next_.fetch_add(1);
    if (part >= parts_) return false;
    run_(part);
    MutexLock lock(mutex_);
    if (++done_ == parts_) all_done_.NotifyAll();
    return true;
  }
  // Runs what is left, and returns when all parts have run. It waits for nothing but parts that
  // run: a thread that comes too late is not waited for.
  void Finish() {
    while (RunNext()) {
    }
    MutexLock lock(mutex_);
    while (done_ < parts_) all_done_.Wait(mutex_);
  }

 private:
  const uint64_t parts_;
  const std::function<void(uint64_t)> run_;
  std::atomic<uint64_t> next_{0};
  Mutex mutex_;
  CondVar all_done_;
  uint64_t done_ GUARDED_BY(mutex_) = 0;
};

}  // namespace leeway
