#include "library/slow_call.h"

#include <utility>

#include "common/status.h"

namespace leeway {

SlowCall::~SlowCall() {
  if (thread_.joinable()) thread_.join();
}

void SlowCall::Start(std::function<absl::Status()> work) {
  {
    MutexLock lock(mutex_);
    done_ = false;
  }
  thread_ = std::thread([this, work = std::move(work)] {
    absl::Status result = work();
    MutexLock lock(mutex_);
    result_ = std::move(result);
    done_ = true;
    changed_.NotifyAll();
  });
}

absl::StatusOr<bool> SlowCall::Await(Time deadline) {
  absl::Status result;
  {
    MutexLock lock(mutex_);
    while (!done_) {
      if (deadline == Time::max()) {
        changed_.Wait(mutex_);
      } else if (!changed_.WaitUntil(mutex_, deadline)) {
        return false;
      }
    }
    result = std::exchange(result_, absl::OkStatus());
  }
  thread_.join();
  RETURN_IF_ERROR(result);
  return true;
}

}  // namespace leeway
