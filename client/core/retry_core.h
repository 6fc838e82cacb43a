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
  // The call is given up when this time has passed since the start of its first attempt.
  Duration total = std::chrono::seconds(600);
  // The name of that limit, for the message.
  const char* total_name = "limits.exchange_seconds";
  // The pause after the n-th quick failure in a row is backoff_min * 2^(n-1), at most backoff_max,
  // times a factor drawn from [0.5, 1).
  Duration backoff_min = std::chrono::milliseconds(20);
  // The longest pause: short compared with a server's restart (seconds), and long compared with an
  // attempt (a millisecond).
  Duration backoff_max = std::chrono::seconds(1);
  // If an attempt took this long, the server was holding it, so the client repeats it without a
  // pause. A pause would delay a worker for which others may be waiting.
  Duration held = std::chrono::milliseconds(500);
  // A server's hint (common/retry_hint.h) may ask for a pause of this length at most.
  Duration hint_max = std::chrono::seconds(5);
};

// Returns the limits of a call that gives up `total` after its first attempt. Messages call this
// limit `name`.
inline RetryLimits Within(Duration total, const char* name) {
  return {.total = total, .total_name = name};
}

struct RetryDecision {
  // If OK, send the call again after `delay`. Otherwise the error is final.
  absl::Status error;
  Duration delay{};
};

// Decides about the attempts of one call. Not thread-safe.
class RetryCore {
 public:
  RetryCore(const RetryLimits& limits, RandomStream jitter);

  // Decides what follows an attempt that took `took` and failed with `status` (not OK). `elapsed`
  // is the time since the first attempt began. If `status` is not retryable, it is the final error.
  // Once `elapsed` reaches the limit, the final error is DEADLINE_EXCEEDED with the text of the
  // last answer.
  RetryDecision OnFailure(const absl::Status& status, Duration took, Duration elapsed);

  // Notes what the attempt in progress waits for, in the server's words.
  void OnTold(std::string what) { told_ = std::move(what); }

  // The last text from the server. It names the missing processes, which the error of an attempt
  // that ran into its own deadline does not.
  const std::string& told() const { return told_; }

 private:
  // Returns the next pause, after multiplication by a random factor.
  Duration NextPause();

  const RetryLimits limits_;
  RandomStream jitter_;
  // The pause, which grows with each quick failure in a row.
  Backoff backoff_;
  std::string told_;
};

}  // namespace leeway
