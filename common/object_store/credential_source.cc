#include "common/object_store/credential_source.h"

namespace leeway {

absl::StatusOr<Credentials> KeptCredentials::Get() {
  MutexLock lock(mutex_);
  return credentials_;
}

bool KeptCredentials::Renew(const Credentials& refused) {
  if (find_ == nullptr) return false;
  absl::StatusOr<Credentials> found = find_();
  MutexLock lock(mutex_);
  if (found.ok()) credentials_ = *std::move(found);
  return credentials_ != refused;
}

}  // namespace leeway
