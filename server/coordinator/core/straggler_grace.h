// For sync clocks that can be complete without their slowest workers: how long a clock still waits
// for them, so that only a really slow worker is dropped, and not just the last one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "common/clock.h"
#include "server/coordinator/core/arrival_history.h"

namespace leeway {

// Handles one clock after the other. Pure; not thread-safe.
class StragglerGrace {
 public:
  struct Rules {
    // A contribution is late if it comes more than this number of standard deviations after the
    // median of the last clocks (consistency.grace_deviations). 0: no clock waits.
    double deviations = 0;
    // The longest wait. It is also the length of every wait while too few clocks have been seen
    // (limits.grace_seconds).
    Duration limit{};
  };
  explicit StragglerGrace(const Rules& rules) : rules_(rules) {}

  // If nobody came in this number of waits in a row, the next waits are short, except every eighth.
  static constexpr uint64_t kVainMax = 3;
  static constexpr uint64_t kTryEvery = 8;

  // The clock could be complete without the missing contributions; `came` others are here. Returns
  // until when it waits: `now` if it does not wait. The time is fixed at the first call for a
  // clock.
  Time Until(Time now, size_t came);
  // Until when the clock waits; nullopt if it does not wait.
  std::optional<Time> until() const { return until_; }

  // Ends the wait: the clock cannot do without the missing contributions after all, or its set is
  // not wanted any more.
  void Stop() { until_.reset(); }

  // The clock's set is fixed, with `came` contributions, and the next clock begins. `arrivals`:
  // when contributions came, where that is known.
  void NextClock(Time now, size_t came, const std::vector<Time>& arrivals);
  // Every block is taken back to another clock, and it is unknown when that clock begins.
  void Restart();

 private:
  Duration After(Time enough) const;
  bool InVain() const { return vain_ >= kVainMax && vain_ % kTryEvery != 0; }

  const Rules rules_;
  ArrivalHistory history_;
  std::optional<Time> began_;
  // The number of contributions at the beginning of the clock's wait. Arrival times do not tell,
  // because a contribution becomes known some time after it came.
  size_t before_ = 0;
  std::optional<Time> until_;
  // The number of waits in a row in which no contribution came.
  uint64_t vain_ = 0;
};

}  // namespace leeway
