// Divides work into parts for several threads. Each thread repeatedly takes the next free part.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "common/mutex.h"

namespace leeway {

// Thread-safe.
class SharedWork {
 public:
  // `run` is called once with each number from 0 to `parts` - 1.
  SharedWork(uint64_t parts, std::function<void(uint64_t)> run)
      : parts_(parts), run_(std::move(run)) {}

  // Runs the next part. Returns false if no part was left.
  bool RunNext() {
    const uint64_t part = next_.fetch_add(1);
    if (part >= parts_) return false;
    run_(part);
    MutexLock lock(mutex_);
    if (++done_ == parts_) all_done_.NotifyAll();
    return true;
  }
  // Runs the parts that are left, and returns when all parts have run. It waits for other threads
  // only while they run a part.
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
