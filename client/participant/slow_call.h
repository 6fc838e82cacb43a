// Runs a long call in the background, so that its caller can wait in short steps.
#pragma once

#include <functional>
#include <future>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/clock.h"
#include "common/status.h"

namespace leeway {

// Runs one call at a time. Used by one thread. The destructor waits for the end of the call.
class SlowCall {
 public:
  // Starts a call. Await() must have returned the result of the previous call. If `deadline` is
  // Time::max(), the caller would only wait, so Await() runs the call on the caller's thread.
  void Start(std::function<absl::Status()> work, Time deadline = {}) {
    const auto how = deadline == Time::max() ? std::launch::deferred : std::launch::async;
    call_ = std::async(how, std::move(work));
  }
  // True from Start() until Await() has returned the result.
  bool pending() const { return call_.valid(); }
  // Waits for the call. Returns true or the call's error when the call is over, and false if the
  // deadline came first. Returns true if no call is pending.
  absl::StatusOr<bool> Await(Time deadline) {
    if (!pending()) return true;
    const bool waits = deadline != Time::max();
    if (waits && call_.wait_until(deadline) == std::future_status::timeout) return false;
    RETURN_IF_ERROR(call_.get());
    return true;
  }

 private:
  std::future<absl::Status> call_;
};

}  // namespace leeway
