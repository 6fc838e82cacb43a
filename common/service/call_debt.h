// Limits how many calls a peer may begin and then cancel.
#pragma once

#include <algorithm>
#include <cstdint>

#include "common/clock.h"

namespace leeway {

// The debt of one connection: its calls that have not succeeded, from gRPC's counts. A call counts
// while it is in progress, and still counts after it was cancelled. The debt decreases over time,
// because a peer that trains for weeks cancels some calls. Pure.
class CallDebt {
 public:
  // The highest debt that a connection may have. It is higher than the number of calls that may be
  // in progress at once (channel.cc), because calls that fail count, too.
  static constexpr uint64_t kMax = 8192;
  // The highest debt that a connection may have before a call on it was admitted.
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
