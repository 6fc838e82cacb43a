// Sync clocks that can do without their slowest workers: how long a clock waits for them all the
// same, so that only who is really slow is dropped, and not whoever happens to be last.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "common/clock.h"
#include "server/coordinator/core/arrival_history.h"

namespace leeway {

// One clock after the other. Pure; not thread-safe.
class StragglerGrace {
 public:
  struct Rules {
    // A contribution is late when it comes so many standard deviations after the median of the
    // last clocks' (consistency.grace_deviations). 0: nobody is waited for.
    double deviations = 0;
    // No wait is longer; and every wait is as long while too few clocks have been seen
    // (limits.grace_seconds).
    Duration limit{};
  };
  explicit StragglerGrace(const Rules& rules) : rules_(rules) {}

  // Where nobody came in so many waits in a row, the next ones are short, but for every eighth.
  static constexpr uint64_t kVainMax = 3;
  static constexpr uint64_t kTryEvery = 8;

  // The clock could do without those who are missing; `came` others are here. Until when it waits
  // for them: fixed at the first call for a clock, `now` if it does not wait.
  Time Until(Time now, size_t came);
  // Until when the clock waits; nothing if it does not.
  std::optional<Time> until() const { return until_; }

  // It cannot do without them after all, or nobody wants its set any more.
  void Stop() { until_.reset(); }

  // The clock's set is fixed, of `came` contributions, which came at these times, where they are
  // known; the next clock begins.
  void NextClock(Time now, size_t came, const std::vector<Time>& arrivals);
  // Every block is taken back to some clock, nobody knows when that begins.
  void Restart();

 private:
  Duration After(Time enough) const;
  bool InVain() const { return vain_ >= kVainMax && vain_ % kTryEvery != 0; }

  const Rules rules_;
  ArrivalHistory history_;
  std::optional<Time> began_;
  // How many had come when the clock's wait began. When they came says nothing of it: a
  // contribution is known of some time after.
  size_t before_ = 0;
  std::optional<Time> until_;
  // Waits in a row in which nobody came.
  uint64_t vain_ = 0;
};

}  // namespace leeway
