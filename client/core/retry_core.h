// Whether a call that failed is sent again, and when. Pure: no clock, no I/O, no threads.
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
  // From the first attempt's start until the call is given up.
  Duration total = std::chrono::seconds(600);
  // Name of that limit, for the message.
  const char* total_name = "limits.exchange_seconds";
  // The pause after the n-th quick failure in a row is backoff_min * 2^(n-1), at most backoff_max,
  // times a factor drawn from [0.5, 1).
  Duration backoff_min = std::chrono::milliseconds(20);
  // Short against a server's restart (seconds), long against the cost of an attempt (a
  // millisecond).
  Duration backoff_max = std::chrono::seconds(1);
  // An attempt that took this long was held by the server: pausing would delay whoever is waited
  // for.
  Duration held = std::chrono::milliseconds(500);
  // A hint when to send again (common/retry_hint.h) counts up to here.
  Duration hint_max = std::chrono::seconds(5);
};

struct RetryDecision {
  // OK: send again after `delay`. Otherwise final.
  absl::Status error;
  Duration delay{};
};

// The life of one call. Not thread-safe.
class RetryCore {
 public:
  RetryCore(const RetryLimits& limits, RandomStream jitter);

  // An attempt failed with `status` (not OK) after `took`; `elapsed` since the first attempt began.
  // DEADLINE_EXCEEDED with the last answer's text once `elapsed` reaches the limit; `status` itself
  // if it is not retryable.
  RetryDecision OnFailure(const absl::Status& status, Duration took, Duration elapsed);

  // The other side says what the attempt under way waits for.
  void OnTold(std::string what) { told_ = std::move(what); }

  // The last thing that the other side said: an attempt cut off by its own deadline says nothing of
  // who is waited for.
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
