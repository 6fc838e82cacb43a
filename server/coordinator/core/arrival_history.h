// When the contributions of a clock usually arrive, learned from the last clocks. The figures are
// the median and the median absolute deviation, because a minority of slow workers and a few bad
// clocks do not move these.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <vector>

#include "common/clock.h"

namespace leeway {

// Pure; not thread-safe.
class ArrivalHistory {
 public:
  // Remembers at most kClocksMax clocks, and gives no figures before kClocksMin clocks. A larger
  // minimum would make a job wait longer for a slow worker, and teach little.
  static constexpr size_t kClocksMax = 32;
  static constexpr size_t kClocksMin = 2;
  // The history keeps at most this number of one clock's delays, evenly chosen from the sorted
  // ones. So a clock costs the same with ten thousand workers as with a few.
  static constexpr size_t kDelaysMax = 64;

  // Adds one clock: the delay of each contribution since the clock's beginning. The delays may be
  // in any order, and the list may be empty.
  void Add(std::vector<Duration> delays);

  struct Usual {
    Duration median{};
    // The median absolute deviation times 1.4826, which equals the standard deviation if the delays
    // are normally distributed (Rousseeuw and Croux 1993).
    Duration deviation{};
    bool operator==(const Usual&) const = default;
  };
  // Figures over all remembered delays; nullopt before kClocksMin clocks have been added.
  std::optional<Usual> Get() const;

 private:
  std::deque<std::vector<Duration>> clocks_;
};

}  // namespace leeway
