// Something that takes long, on a thread of its own, so that whoever needs it waits no longer at a
// time than it likes.
#pragma once

#include <functional>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/clock.h"
#include "common/mutex.h"

namespace leeway {

// One call at a time. Of one thread.
class SlowCall {
 public:
  SlowCall() = default;
  // Waits for its end.
  ~SlowCall();
  SlowCall(const SlowCall&) = delete;

  // The one before has been waited for.
  void Start(std::function<absl::Status()> work) EXCLUDES(mutex_);
  // Begun, and Await() has not returned its result yet.
  bool pending() const { return thread_.joinable(); }
  // True when it is over; its error. False if the deadline came first.
  absl::StatusOr<bool> Await(Time deadline) EXCLUDES(mutex_);

 private:
  Mutex mutex_;
  CondVar changed_;
  bool done_ GUARDED_BY(mutex_) = false;
  absl::Status result_ GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace leeway
