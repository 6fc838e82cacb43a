// Whether the coordinator itself hears. Processes of a job hardly fall silent together; a
// coordinator that stood still, or whose port somebody keeps busy, hears none of them. So where
// most are silent, that says more of the coordinator than of them. Owns when it looked last, and
// when it last doubted itself.
#pragma once

#include <cstddef>

#include "common/clock.h"

namespace leeway {

// Of those who should be heard, at one moment.
struct Silence {
  size_t held = 0;
  // Not heard for half a lease.
  size_t half = 0;
  // Not heard for a lease.
  size_t whole = 0;

  void Count(Duration silent, Duration lease) {
    ++held;
    half += silent > lease / 2 ? 1 : 0;
    whole += silent > lease ? 1 : 0;
  }
};

// Pure; not thread-safe.
class Hearing {
 public:
  enum class Verdict {
    kHears,
    // Time has passed in which nothing could be heard.
    kStoodStill,
    // A lease is over, and most are silent. Once in two leases: who is silent for longer is lost.
    kMostAreSilent,
  };

  explicit Hearing(Time now) : last_tick_(now) {}

  // At each tick. If it is not kHears, every lease is to count from `now`.
  Verdict Tick(const Silence& silence, Duration lease, Time now) {
    const Duration since = now - last_tick_;
    last_tick_ = now;
    if (since > lease / 2) return Verdict::kStoodStill;
    const bool most = silence.whole > 0 && silence.held > 1 && 2 * silence.half > silence.held;
    if (!most || now < next_doubt_) return Verdict::kHears;
    next_doubt_ = now + 2 * lease;
    return Verdict::kMostAreSilent;
  }

 private:
  Time last_tick_;
  Time next_doubt_;
};

}  // namespace leeway
