#include "client/calls/leader_wait.h"

#include <chrono>
#include <thread>

#include "absl/strings/str_cat.h"
#include "common/brief_waits.h"

namespace leeway {

absl::Status LeaderWait::Pause(const std::string& who, const std::string& missing, Time began) {
  // A pause is short compared with a step, and long compared with one look at the contributions.
  constexpr Duration kPause = std::chrono::microseconds(200);
  const Time now = now_();
  if (now - began >= limit_ && !goes_on_()) {
    return absl::DeadlineExceededError(absl::StrCat(who, ": given up after ", Seconds(limit_),
                                                    " s (limits.exchange_seconds): ", missing));
  }
  // A wait that has just begun is likely to end soon, so the thread only yields.
  const bool brief = now - began < BriefWaits::kLook;
  if (brief) std::this_thread::yield();
  MutexLock lock(mutex_);
  waiting_ = missing;
  if (!cancelled_ && !brief) {
    changed_.WaitUntil(mutex_, std::chrono::steady_clock::now() + kPause);
  }
  if (cancelled_) return absl::CancelledError(absl::StrCat(missing, ": the wait was cancelled"));
  return absl::OkStatus();
}

std::optional<v1::HostGroup> LeaderWait::End() {
  MutexLock lock(mutex_);
  waiting_.clear();
  return std::exchange(offers_, std::nullopt);
}

void LeaderWait::TakeOffers(const v1::HostGroup& group) {
  MutexLock lock(mutex_);
  offers_ = group;
  changed_.NotifyAll();
}

std::string LeaderWait::Waiting() const {
  MutexLock lock(mutex_);
  return waiting_;
}

void LeaderWait::Cancel() {
  MutexLock lock(mutex_);
  cancelled_ = true;
  changed_.NotifyAll();
}

}  // namespace leeway
