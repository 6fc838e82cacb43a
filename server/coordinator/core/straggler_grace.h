// A sync clock that could be complete without its slowest workers waits for them for some time.
// This class decides how long. The wait makes sure that a clock drops only really slow workers, and
// not simply the last one.
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
    // A clock waits for contributions up to this number of standard deviations after the median of
    // the last clocks (consistency.grace_deviations). If 0, no clock waits.
    double deviations = 0;
    // The longest wait (limits.grace_seconds). Until the history has enough clocks, every wait has
    // this length.
    Duration limit{};
  };
  explicit StragglerGrace(const Rules& rules) : rules_(rules) {}

  // After kVainMax waits in a row during which no contribution came, waits are short until a
  // contribution comes. Only each kTryEvery-th of these waits has its full length.
  static constexpr uint64_t kVainMax = 3;
  static constexpr uint64_t kTryEvery = 8;

  // Begins the wait of a clock that could be complete without the missing contributions. `came`
  // contributions are here. Returns the time at which the wait ends, which is `now` if the clock
  // does not wait. The first call for a clock fixes that time.
  Time Until(Time now, size_t came);
  // Returns the time at which the clock's wait ends; nullopt if the clock does not wait.
  std::optional<Time> until() const { return until_; }

  // Ends the wait, because the clock cannot do without the missing contributions after all, or
  // because its set is not wanted any more.
  void Stop() { until_.reset(); }

  // Ends the clock, because its set is fixed with `came` contributions, and begins the next clock.
  // `arrivals` are the known times at which contributions came.
  void NextClock(Time now, size_t came, const std::vector<Time>& arrivals);
  // Forgets the current clock, because the job has gone to another clock. It is not known when the
  // other clock began.
  void Restart();

 private:
  Duration After(Time enough) const;
  bool InVain() const { return vain_ >= kVainMax && vain_ % kTryEvery != 0; }

  const Rules rules_;
  ArrivalHistory history_;
  std::optional<Time> began_;
  // The number of contributions at the beginning of the clock's wait. Arrival times cannot replace
  // this number, because a contribution becomes known some time after it came.
  size_t before_ = 0;
  std::optional<Time> until_;
  // The number of waits in a row in which no contribution came.
  uint64_t vain_ = 0;
};

}  // namespace leeway
