#include "server/coordinator/folder_use.h"

namespace leeway {

FolderUse::Hold FolderUse::Enter(uint64_t clock) {
  MutexLock lock(mutex_);
  while (claimed_.count(clock) > 0) changed_.Wait(mutex_);
  ++users_[clock];
  return Hold(this, clock);
}

std::optional<FolderUse::Hold> FolderUse::Claim(uint64_t clock) {
  MutexLock lock(mutex_);
  if (users_.count(clock) > 0 || !claimed_.insert(clock).second) return std::nullopt;
  return Hold(this, clock);
}

void FolderUse::Release(uint64_t clock) {
  MutexLock lock(mutex_);
  const auto users = users_.find(clock);
  if (users == users_.end()) {
    claimed_.erase(clock);
    changed_.NotifyAll();
  } else if (--users->second == 0) {
    users_.erase(users);
  }
}

}  // namespace leeway
