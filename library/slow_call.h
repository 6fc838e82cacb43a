// Runs a long call on a thread of its own, so that its caller can wait in short steps.
#pragma once

#include <functional>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/clock.h"
#include "common/mutex.h"

namespace leeway {

// Runs one call at a time. Used by one thread.
class SlowCall {
 public:
  SlowCall() = default;
  // Waits for the end of the call.
  ~SlowCall();
  SlowCall(const SlowCall&) = delete;

  // Starts a call. Await() must have returned the result of the previous call.
  void Start(std::function<absl::Status()> work) EXCLUDES(mutex_);
  // True from Start() until Await() has returned the result.
  bool pending() const { return thread_.joinable(); }
  // Waits for the call. Returns true or the call's error when the call is over, and false if the
  // deadline came first.
  absl::StatusOr<bool> Await(Time deadline) EXCLUDES(mutex_);

 private:
  Mutex mutex_;
  CondVar changed_;
  bool done_ GUARDED_BY(mutex_) = false;
  absl::Status result_ GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace leeway
