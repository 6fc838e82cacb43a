// Limits how many calls a peer may begin and then cancel.
#pragma once

#include <algorithm>
#include <cstdint>

#include "common/clock.h"

namespace leeway {

// The debt of one connection, computed from gRPC's counts of its calls. A call counts as owed while
// it is in progress, and also after it was cancelled. The debt decreases over time, because a peer
// that trains for weeks cancels some calls. Pure.
class CallDebt {
 public:
  // The highest debt of a connection. It is more than the number of calls that a connection may
  // have in progress (channel.cc), because some of these calls do not succeed.
  static constexpr uint64_t kMax = 8192;
  // The highest debt of a connection on which no call was admitted.
  static constexpr uint64_t kStrangerMax = 1024;
  static constexpr double kForgivenPerSecond = 64;

  explicit CallDebt(Time now) : seen_(now) {}

  // Returns the debt at the time `now`, from the numbers of calls that were started and that
  // succeeded. A connection whose debt is above its limit must be closed.
  uint64_t Owed(uint64_t started, uint64_t succeeded, Time now) {
    const double owed = static_cast<double>(started - std::min(started, succeeded));
    forgiven_ = std::min(owed, forgiven_ + kForgivenPerSecond * Seconds(now - seen_));
    seen_ = now;
    return static_cast<uint64_t>(owed - forgiven_);
  }

 private:
  Time seen_;
  double forgiven_ = 0;
};

}  // namespace leeway
