// Decides whether a failed call is sent again, and when. Pure: no clock, no I/O, no threads.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "common/backoff.h"
#include "common/clock.h"
#include "common/philox.h"
#include "common/retry_hint.h"

namespace leeway {

struct RetryLimits {
  // From the start of the first attempt until the call is given up.
  Duration total = std::chrono::seconds(600);
  // The name of that limit, for the message.
  const char* total_name = "limits.exchange_seconds";
  // The pause after the n-th quick failure in a row is backoff_min * 2^(n-1), at most backoff_max,
  // times a factor drawn from [0.5, 1).
  Duration backoff_min = std::chrono::milliseconds(20);
  // Short compared with a server's restart (seconds), long compared with an attempt (a
  // millisecond).
  Duration backoff_max = std::chrono::seconds(1);
  // An attempt that took this long was held by the server. A pause would delay the workers that the
  // others wait for.
  Duration held = std::chrono::milliseconds(500);
  // A server's hint when to send again (common/retry_hint.h) counts at most this long.
  Duration hint_max = std::chrono::seconds(5);
};

struct RetryDecision {
  // OK: send the call again after `delay`. Otherwise the error is final.
  absl::Status error;
  Duration delay{};
};

// Decides for one call. Not thread-safe.
class RetryCore {
 public:
  RetryCore(const RetryLimits& limits, RandomStream jitter);

  // An attempt failed with `status` (not OK) after `took`. `elapsed` is the time since the first
  // attempt began. DEADLINE_EXCEEDED with the text of the last answer once `elapsed` reaches the
  // limit. `status` itself if it is not retryable.
  RetryDecision OnFailure(const absl::Status& status, Duration took, Duration elapsed);

  // The other side says what the attempt in progress waits for.
  void OnTold(std::string what) { told_ = std::move(what); }

  // The last text from the other side. An attempt that its own deadline cut off does not say who is
  // missing.
  const std::string& told() const { return told_; }

 private:
  // The next pause, times a draw.
  Duration NextPause();

  const RetryLimits limits_;
  RandomStream jitter_;
  // Grows with quick failures in a row.
  Backoff backoff_;
  std::string told_;
};

}  // namespace leeway
