// Which folders of checkpoints somebody is at work in, so that none is removed under his hands.
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
  // Somebody's work in a folder, or its removal; ends with it.
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

  // The folder is not removed meanwhile. Waits while it is.
  Hold Enter(uint64_t clock) EXCLUDES(mutex_);
  // Nobody enters it meanwhile; nothing if somebody is at work there.
  std::optional<Hold> Claim(uint64_t clock) EXCLUDES(mutex_);

 private:
  void Release(uint64_t clock) EXCLUDES(mutex_);

  Mutex mutex_;
  CondVar changed_;
  // How many are at work in it; 0 is not kept.
  std::map<uint64_t, uint32_t> users_ GUARDED_BY(mutex_);
  std::set<uint64_t> claimed_ GUARDED_BY(mutex_);
};

}  // namespace leeway
