#include "server/shard/admission.h"

#include <algorithm>

namespace leeway {

uint64_t Admission::LowestVersion() const {
  uint64_t lowest = VersionOf(0);
  for (uint32_t index = 1; index < versions_.size(); ++index) {
    lowest = std::min(lowest, VersionOf(index));
  }
  return lowest;
}

uint32_t Admission::Oldest() {
  if (versions_.empty()) return 0;
  MutexLock lock(mutex_);
  while (VersionOf(index_) > version_) {
    if (++index_ < versions_.size()) continue;
    index_ = 0;
    version_ = LowestVersion();
  }
  return index_;
}

}  // namespace leeway
