// Decides whether the coordinator itself can hear the other processes. The processes of a job
// hardly ever fall silent together. But a coordinator that was suspended, or whose port is
// overloaded, receives messages of none of them. So if most processes are silent, the fault is more
// likely in the coordinator. Owns the time of the last tick, and the earliest time at which Tick
// may return kMostAreSilent again.
#pragma once

#include <cstddef>

#include "common/clock.h"

namespace leeway {

// The processes from which heartbeats should come, counted at one moment.
struct Silence {
  size_t held = 0;
  // The number of processes that have been silent for more than half a lease.
  size_t half = 0;
  // The number of processes that have been silent for more than a lease.
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
    // The coordinator was suspended, and could not hear any process.
    kStoodStill,
    // A lease has ended, and most processes are silent. Tick returns this at most once in two
    // leases, so a process that stays silent for longer is lost.
    kMostAreSilent,
  };

  explicit Hearing(Time now) : last_tick_(now) {}

  // Call this function at each tick. If the result is not kHears, every lease must begin again at
  // `now`.
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
