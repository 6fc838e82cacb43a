// A few threads that share out one loop at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

#include "absl/functional/function_ref.h"
#include "common/mutex.h"

namespace leeway {

// Called by one thread at a time, which works with the others. The split is a function of the
// loop's size and the number of threads, never of timing.
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
  void Stop() EXCLUDES(mutex_);

  const uint32_t threads_;
  std::vector<std::thread> helpers_;

  Mutex mutex_;
  CondVar started_;
  CondVar finished_;
  Loop loop_ GUARDED_BY(mutex_);
  uint64_t loops_ GUARDED_BY(mutex_) = 0;
  uint32_t running_ GUARDED_BY(mutex_) = 0;
  bool stopping_ GUARDED_BY(mutex_) = false;
};

}  // namespace leeway
