// Computes the pauses between attempts. Pure: the caller waits and draws the random numbers.
#pragma once

#include <algorithm>

#include "common/clock.h"

namespace leeway {

// The first pause is `first`. Each further pause is twice as long as the previous one, but at most
// `max`. Not thread-safe.
class Backoff {
 public:
  Backoff(Duration first, Duration max) : first_(first), max_(max), next_(std::min(first, max)) {}

  // Returns the pause before the next attempt.
  Duration Next() {
    const Duration pause = next_;
    next_ = pause > max_ / 2 ? max_ : 2 * pause;
    return pause;
  }

  // Starts over: the next pause is `first`.
  void Reset() { next_ = std::min(first_, max_); }

 private:
  const Duration first_;
  const Duration max_;
  Duration next_;
};

}  // namespace leeway
