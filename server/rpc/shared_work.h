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

  // Takes parts until none is left; those of others may still be running.
  void Help() {
    uint64_t ran = 0;
    for (uint64_t part; (part = next_.fetch_add(1)) < parts_; ++ran) run_(part);
    if (ran == 0) return;
    MutexLock lock(mutex_);
    done_ += ran;
    if (done_ == parts_) all_done_.NotifyAll();
  }
  // Helps, and returns when all parts have run. It waits for nothing but parts that run: a thread
  // that comes too late is not waited for.
  void Finish() {
    Help();
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
