// Decides when a request to an object store is sent again. Pure: the caller passes in the clock and
// the random draws.
#pragma once

#include <cstdint>
#include <optional>

#include "common/backoff.h"
#include "common/clock.h"
#include "common/philox.h"

namespace leeway {

struct StoreRetryLimits {
  // The time from the first attempt within which the last attempt must begin.
  Duration total = std::chrono::seconds(60);
  // The pause before attempt n + 1 is drawn from [0, min(pause_max, pause_first * 2^(n-1))). This
  // "full jitter" prevents many servers from sending their requests at the same moment.
  Duration pause_first = std::chrono::milliseconds(200);
  Duration pause_max = std::chrono::seconds(10);
};

// The retries of one request. Not thread-safe.
class StoreRetry {
 public:
  StoreRetry(const StoreRetryLimits& limits, RandomStream draws)
      : limits_(limits), draws_(draws), bound_(limits.pause_first, limits.pause_max) {}

  // Call this function when an attempt has failed, `elapsed` after the first attempt began. Returns
  // the pause before the next attempt, or nothing if there must be no further attempt. `asked` is
  // the time in the store's Retry-After, which is a lower bound of the pause.
  std::optional<Duration> PauseAfter(Duration elapsed, std::optional<Duration> asked);
  // Returns the number of failed attempts.
  uint32_t attempts() const { return attempts_; }

 private:
  const StoreRetryLimits limits_;
  RandomStream draws_;
  Backoff bound_;
  uint32_t attempts_ = 0;
};

}  // namespace leeway
