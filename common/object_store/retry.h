// When a request to an object store is sent again. Pure: the clock and the draws are passed in.
#pragma once

#include <cstdint>
#include <optional>

#include "common/backoff.h"
#include "common/clock.h"
#include "common/philox.h"

namespace leeway {

struct StoreRetryLimits {
  // No attempt begins later than this after the first one.
  Duration total = std::chrono::seconds(60);
  // Before attempt n + 1 the pause is drawn from [0, min(pause_max, pause_first * 2^(n-1))), "full
  // jitter", so that many servers do not come back at the same moment.
  Duration pause_first = std::chrono::milliseconds(200);
  Duration pause_max = std::chrono::seconds(10);
};

// The life of one request. Not thread-safe.
class StoreRetry {
 public:
  StoreRetry(const StoreRetryLimits& limits, RandomStream draws)
      : limits_(limits), draws_(draws), bound_(limits.pause_first, limits.pause_max) {}

  // An attempt has failed, `elapsed` after the first one began. How long to wait before the next
  // one; nothing: there is to be none. `asked`: what the store said (Retry-After), which is then
  // the least.
  std::optional<Duration> PauseAfter(Duration elapsed, std::optional<Duration> asked);
  // That have failed.
  uint32_t attempts() const { return attempts_; }

 private:
  const StoreRetryLimits limits_;
  RandomStream draws_;
  Backoff bound_;
  uint32_t attempts_ = 0;
};

}  // namespace leeway
