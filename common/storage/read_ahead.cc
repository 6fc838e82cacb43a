#include "common/storage/read_ahead.h"

#include <algorithm>
#include <utility>

namespace leeway {

ReadAhead::~ReadAhead() {
  std::vector<std::thread> threads;
  {
    MutexLock lock(mutex_);
    ending_ = true;
    threads = std::move(threads_);
  }
  changed_.NotifyAll();
  for (std::thread& thread : threads) thread.join();
}

void ReadAhead::WillNeed(const std::string& location) {
  MutexLock lock(mutex_);
  if (fetching_.contains(location)) return;
  if (std::find(waiting_.begin(), waiting_.end(), location) != waiting_.end()) return;
  waiting_.push_back(location);
  if (threads_.size() < threads_max_) threads_.emplace_back([this] { Run(); });
  changed_.NotifyOne();
}

std::optional<std::string> ReadAhead::Next() {
  MutexLock lock(mutex_);
  while (waiting_.empty() && !ending_) changed_.Wait(mutex_);
  if (ending_) return std::nullopt;
  std::string location = std::move(waiting_.front());
  waiting_.pop_front();
  fetching_.insert(location);
  return location;
}

void ReadAhead::Run() {
  while (const std::optional<std::string> location = Next()) {
    copies_->Get(*location).IgnoreError();
    MutexLock lock(mutex_);
    fetching_.erase(*location);
  }
}

}  // namespace leeway
