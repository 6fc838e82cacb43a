// A thread that runs jobs in the order in which they were posted.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <thread>
#include <utility>

#include "common/mutex.h"

namespace leeway {

// Thread-safe. The destructor first runs everything that was posted.
class SerialThread {
 public:
  SerialThread() : thread_([this] { Run(); }) {}
  ~SerialThread() {
    {
      MutexLock lock(mutex_);
      ending_ = true;
    }
    changed_.NotifyAll();
    thread_.join();
  }

  void Post(std::function<void()> job) EXCLUDES(mutex_) {
    {
      MutexLock lock(mutex_);
      jobs_.push_back(std::move(job));
    }
    changed_.NotifyOne();
  }

  size_t waiting() const EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return jobs_.size();
  }

 private:
  void Run() EXCLUDES(mutex_) {
    while (std::function<void()> job = Next()) job();
  }
  // Waits for the next job, and returns it; returns null at the end.
  std::function<void()> Next() EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    while (jobs_.empty() && !ending_) changed_.Wait(mutex_);
    if (jobs_.empty()) return nullptr;
    std::function<void()> job = std::move(jobs_.front());
    jobs_.pop_front();
    return job;
  }

  mutable Mutex mutex_;
  CondVar changed_;
  bool ending_ GUARDED_BY(mutex_) = false;
  std::deque<std::function<void()>> jobs_ GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace leeway
