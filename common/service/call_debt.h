// Bounds how many calls a peer may begin without letting them end.
#pragma once

#include <algorithm>
#include <cstdint>

#include "common/clock.h"

namespace leeway {

// The debt of one connection, computed from gRPC's counts. A call is owed while it is in progress,
// and after it was cancelled. Debts are forgiven over time, because a peer that trains for weeks
// cancels some calls. A pure class.
class CallDebt {
 public:
  // More than the number of calls that a connection may have in progress (channel.cc), since
  // some of those do not succeed.
  static constexpr uint64_t kMax = 8192;
  // For a connection on which no call was admitted.
  static constexpr uint64_t kStrangerMax = 1024;
  static constexpr double kForgivenPerSecond = 64;

  explicit CallDebt(Time now) : seen_(now) {}

  // What is owed now. A connection that owes more than its limit must be closed.
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
