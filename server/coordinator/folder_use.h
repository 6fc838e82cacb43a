// Which checkpoint folders are in use, so that none is removed meanwhile.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "common/mutex.h"

namespace leeway {

// Folders are known by their clocks. Thread-safe; outlives what it gives out.
class FolderUse {
 public:
  // The use of a folder, or its removal. Ends with this object.
  class Hold {
   public:
    Hold(Hold&& other) noexcept : Hold(std::exchange(other.use_, nullptr), other.clock_) {}
    Hold& operator=(Hold&&) = delete;
    ~Hold() {
      if (use_ != nullptr) use_->Release(clock_);
    }
    uint64_t clock() const { return clock_; }

   private:
    friend class FolderUse;
    Hold(FolderUse* use, uint64_t clock) : use_(use), clock_(clock) {}
    FolderUse* use_;
    uint64_t clock_;
  };

  // Keeps the folder from being removed. Waits while it is being removed.
  Hold Enter(uint64_t clock) EXCLUDES(mutex_);
  // Keeps everybody out of the folder. Nothing if it is in use.
  std::optional<Hold> Claim(uint64_t clock) EXCLUDES(mutex_);

 private:
  void Release(uint64_t clock) EXCLUDES(mutex_);

  Mutex mutex_;
  CondVar changed_;
  // The number of uses; 0 is not kept.
  std::map<uint64_t, uint32_t> users_ GUARDED_BY(mutex_);
  std::set<uint64_t> claimed_ GUARDED_BY(mutex_);
};

}  // namespace leeway
