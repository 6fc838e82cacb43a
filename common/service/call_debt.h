// How many calls a peer may begin without letting them end.
#pragma once

#include <algorithm>
#include <cstdint>

#include "common/clock.h"

namespace leeway {

// The debt of one connection, by gRPC's counts. A call that was cancelled, or is in progress, is
// owed. Debts are forgiven with time, because a peer that trains for weeks cancels some calls.
// Pure.
class CallDebt {
 public:
  // More than the calls that a connection may have in progress (channel.cc), since some of those
  // end otherwise.
  static constexpr uint64_t kMax = 8192;
  // Of a connection on which none was let in.
  static constexpr uint64_t kStrangerMax = 1024;
  static constexpr double kForgivenPerSecond = 64;

  explicit CallDebt(Time now) : seen_(now) {}

  // What is owed now. The connection must be closed if that is more than it may be.
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
