// Learns from the last clocks when the contributions of a clock usually arrive. Reports the median
// and the median absolute deviation: a minority of slow workers or a few bad clocks hardly change
// these figures.
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
  // The most clocks that the history remembers.
  static constexpr size_t kClocksMax = 32;
  // Get() returns figures once this number of clocks was added. A larger minimum would make a job
  // wait longer for a slow worker, and would improve the figures little.
  static constexpr size_t kClocksMin = 2;
  // The most delays that the history keeps for one clock, chosen evenly from the clock's sorted
  // delays. So a clock costs the same with ten thousand workers as with a few.
  static constexpr size_t kDelaysMax = 64;

  // Adds one clock. `delays` are the times from the beginning of the clock to each contribution, in
  // any order; the list may be empty.
  void Add(std::vector<Duration> delays);

  struct Usual {
    Duration median{};
    // The median absolute deviation times 1.4826, which equals the standard deviation if the delays
    // are normally distributed (Rousseeuw and Croux 1993).
    Duration deviation{};
    bool operator==(const Usual&) const = default;
  };
  // Returns the figures over all remembered delays; nullopt before kClocksMin clocks have been
  // added.
  std::optional<Usual> Get() const;

 private:
  std::deque<std::vector<Duration>> clocks_;
};

}  // namespace leeway
