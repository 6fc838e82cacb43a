// The lives of workers that a server believes, for all its threads.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "common/mutex.h"
#include "server/core/life_book.h"

namespace leeway {

// Thread-safe.
class KnownLives {
 public:
  // From now on only learned incarnations are believed. A thread that meets an unknown incarnation
  // calls `ask`, without locks. `ask` then asks the coordinator, and the answer is passed to
  // Learn().
  void Expect(uint32_t ranks, std::function<void()> ask) {
    MutexLock lock(mutex_);
    book_ = LifeBook(ranks);
    ask_ = std::move(ask);
  }
  void Learn(const std::vector<uint64_t>& incarnations) {
    MutexLock lock(mutex_);
    book_.Learn(incarnations);
  }
  // As LifeBook::Check.
  absl::Status Check(uint32_t rank, uint64_t incarnation) const {
    absl::Status status;
    std::function<void()> ask;
    {
      MutexLock lock(mutex_);
      status = book_.Check(rank, incarnation);
      if (absl::IsUnavailable(status)) ask = ask_;
    }
    if (ask) ask();
    return status;
  }

 private:
  mutable Mutex mutex_;
  LifeBook book_ GUARDED_BY(mutex_);
  std::function<void()> ask_ GUARDED_BY(mutex_);
};

}  // namespace leeway
