#include "client/participant/stop_gate.h"

#include <utility>

namespace leeway {

bool StopGate::PastEnd(uint64_t clock) const {
  return !refused_.ok() || (stop_at_.has_value() && clock >= *stop_at_);
}

bool StopGate::Enter(uint64_t clock) {
  MutexLock lock(mutex_);
  if (PastEnd(clock)) return false;
  running_ = clock;
  return true;
}

void StopGate::Leave() {
  MutexLock lock(mutex_);
  running_.reset();
}

bool StopGate::IsOpen(uint64_t clock) const {
  MutexLock lock(mutex_);
  return !PastEnd(clock);
}

void StopGate::StopAt(uint64_t clock) {
  {
    MutexLock lock(mutex_);
    stop_at_ = clock;
    if (broken_off_ || !running_.has_value() || !PastEnd(*running_)) return;
    broken_off_ = true;
  }
  break_off_();
}

void StopGate::Refuse(const absl::Status& why) {
  {
    MutexLock lock(mutex_);
    refused_ = why;
    if (std::exchange(broken_off_, true)) return;
  }
  break_off_();
}

absl::Status StopGate::refused() const {
  MutexLock lock(mutex_);
  return refused_;
}

}  // namespace leeway
