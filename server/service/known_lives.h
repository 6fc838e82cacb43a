// The incarnations of workers that a server accepts. All the server's threads use one object.
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
  // Accepts only learned incarnations from now on. When Check finds an unknown incarnation, it
  // calls `ask`, without locks. `ask` makes the server ask the coordinator, whose answer goes to
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
  // Returns the result of LifeBook::Check.
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
