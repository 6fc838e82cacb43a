// Keeps track of the checkpoint folders in use, so that no folder is removed while it is in use.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "common/mutex.h"

namespace leeway {

// A folder is named by its clock. Thread-safe. Must outlive the Holds that it returns.
class FolderUse {
 public:
  // While a Hold exists, a folder is in use or is being removed.
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

  // Keeps the folder from being removed. If the folder is being removed, waits until the removal is
  // done.
  Hold Enter(uint64_t clock) EXCLUDES(mutex_);
  // Keeps all other users out of the folder, so that the caller can remove it. Returns nullopt if
  // the folder is in use.
  std::optional<Hold> Claim(uint64_t clock) EXCLUDES(mutex_);

 private:
  void Release(uint64_t clock) EXCLUDES(mutex_);

  Mutex mutex_;
  CondVar changed_;
  // By clock: the number of users of the folder. Folders without users have no entry.
  std::map<uint64_t, uint32_t> users_ GUARDED_BY(mutex_);
  std::set<uint64_t> claimed_ GUARDED_BY(mutex_);
};

}  // namespace leeway
