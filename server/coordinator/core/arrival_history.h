// When the contributions of a clock usually come, learned from the last clocks: median and median
// absolute deviation, which a minority of slow workers and a few bad clocks do not move.
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
  // Remembers so many clocks, and says nothing before it has seen two: more would make a job wait
  // for a slow worker for longer, and teach little.
  static constexpr size_t kClocksMax = 32;
  static constexpr size_t kClocksMin = 2;
  // Of one clock's delays these many are kept, evenly over the sorted ones, so that with ten
  // thousand workers a clock costs what it costs with a few.
  static constexpr size_t kDelaysMax = 64;

  // How long after its beginning each contribution of one clock came; in any order, may be empty.
  void Add(std::vector<Duration> delays);

  struct Usual {
    Duration median{};
    // The median absolute deviation times 1.4826: the standard deviation, were the delays normal
    // (Rousseeuw and Croux 1993).
    Duration deviation{};
    bool operator==(const Usual&) const = default;
  };
  // Of all delays that are remembered; nothing before kClocksMin clocks have been added.
  std::optional<Usual> Get() const;

 private:
  std::deque<std::vector<Duration>> clocks_;
};

}  // namespace leeway
