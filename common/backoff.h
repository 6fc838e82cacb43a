// Pauses between attempts that double. Pure: who waits and who draws is the caller's choice.
#pragma once

#include <algorithm>

#include "common/clock.h"

namespace leeway {

// The first pause is `first`. Each next one is twice as long, and none is longer than `max`. Not
// thread-safe.
class Backoff {
 public:
  Backoff(Duration first, Duration max) : first_(first), max_(max), next_(std::min(first, max)) {}

  // The pause before the next attempt.
  Duration Next() {
    const Duration pause = next_;
    next_ = pause > max_ / 2 ? max_ : 2 * pause;
    return pause;
  }

  // The next pause is the first one again.
  void Reset() { next_ = std::min(first_, max_); }

 private:
  const Duration first_;
  const Duration max_;
  Duration next_;
};

}  // namespace leeway
