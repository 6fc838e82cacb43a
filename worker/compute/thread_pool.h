// A few threads that share out one loop at a time.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

#include "absl/functional/function_ref.h"
#include "common/brief_waits.h"
#include "common/mutex.h"

namespace leeway {

// Called by one thread at a time, which works with the others. The split is a function of the
// loop's size and the number of threads, never of timing. A step is many short loops, so who waits
// polls for a moment before it sleeps, as BriefWaits says.
class ThreadPool {
 public:
  // `threads` in all, the caller included; at least 1. Throws std::system_error if they cannot be
  // started.
  explicit ThreadPool(uint32_t threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  uint32_t threads() const { return threads_; }

  // Parts of [0, count) with at least `grain` each (but one part at least): what For makes.
  uint32_t Parts(size_t count, size_t grain) const;

  using Body = absl::FunctionRef<void(size_t begin, size_t end, uint32_t part)>;
  // body(begin, end, part) over contiguous parts of [0, count), all done on return. Must not be
  // nested.
  void For(size_t count, size_t grain, Body body);

 private:
  struct Loop {
    const Body* body = nullptr;
    size_t count = 0;
    uint32_t parts = 0;
  };
  static void RunPart(const Loop& loop, uint32_t part);
  // Part `index` of each loop is helper `index`'s.
  void Help(uint32_t index) EXCLUDES(mutex_);
  // The loop after number `seen`, which it becomes; false where there will be none.
  bool AwaitLoop(BriefWaits& waits, uint64_t& seen, Loop& loop) EXCLUDES(mutex_);
  void AwaitHelpers() EXCLUDES(mutex_);
  void Stop() EXCLUDES(mutex_);

  const uint32_t threads_;
  std::vector<std::thread> helpers_;

  Mutex mutex_;
  CondVar started_;
  CondVar finished_;
  Loop loop_ GUARDED_BY(mutex_);
  // Both change with the lock, and are polled without.
  std::atomic<uint64_t> loops_ = 0;
  std::atomic<uint32_t> running_ = 0;
  // The caller's.
  BriefWaits waits_;
  bool stopping_ GUARDED_BY(mutex_) = false;
};

}  // namespace leeway
