// A few threads that share one loop at a time.
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

// Only one thread may call the pool at a time, and that thread also works. The division of a loop
// depends on the loop's size and on the number of threads, never on timing. A step has many short
// loops, so a waiting thread polls for a moment before it sleeps (BriefWaits).
class ThreadPool {
 public:
  // Starts `threads` - 1 threads; the caller is one more. `threads` must be at least 1. Throws
  // std::system_error if the threads cannot be started.
  explicit ThreadPool(uint32_t threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  uint32_t threads() const { return threads_; }

  // Returns the number of parts into which For divides [0, count). Each part has at least `grain`
  // elements, unless there is only one part.
  uint32_t Parts(size_t count, size_t grain) const;

  using Body = absl::FunctionRef<void(size_t begin, size_t end, uint32_t part)>;
  // Calls body(begin, end, part) for contiguous parts of [0, count), and returns when all calls are
  // done. Calls of For must not be nested.
  void For(size_t count, size_t grain, Body body);

 private:
  struct Loop {
    const Body* body = nullptr;
    size_t count = 0;
    uint32_t parts = 0;
  };
  static void RunPart(const Loop& loop, uint32_t part);
  // Runs part `index` of each loop on helper thread `index`.
  void Help(uint32_t index) EXCLUDES(mutex_);
  // Waits for the loop after loop number `seen`, and sets `seen` to the new loop's number. Returns
  // false if the pool stops.
  bool AwaitLoop(BriefWaits& waits, uint64_t& seen, Loop& loop) EXCLUDES(mutex_);
  void AwaitHelpers() EXCLUDES(mutex_);
  void Stop() EXCLUDES(mutex_);

  const uint32_t threads_;
  std::vector<std::thread> helpers_;

  Mutex mutex_;
  CondVar started_;
  CondVar finished_;
  Loop loop_ GUARDED_BY(mutex_);
  // Threads write `loops_` and `running_` with the lock held, and poll them without the lock.
  std::atomic<uint64_t> loops_ = 0;
  std::atomic<uint32_t> running_ = 0;
  // The brief waits of the calling thread.
  BriefWaits waits_;
  bool stopping_ GUARDED_BY(mutex_) = false;
};

}  // namespace leeway
