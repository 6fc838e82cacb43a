// Time is passed in, so that tests need not wait for it.
#pragma once

#include <chrono>
#include <functional>

namespace leeway {

using Time = std::chrono::steady_clock::time_point;
using Duration = std::chrono::steady_clock::duration;

inline Time SteadyNow() { return std::chrono::steady_clock::now(); }

// Unlike Time's clock, this one also runs while the host is suspended. The holder of a lease uses
// it to decide whether the lease still stands. The granter may use Time, which is never ahead.
struct BootClock {
  using duration = Duration;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<BootClock, duration>;
  static constexpr bool is_steady = true;
  // CLOCK_BOOTTIME.
  static time_point now();
};
using BootTime = BootClock::time_point;

// Tells the seconds since 1970, as the system's clock had them when this was called and by the time
// that has passed since: a clock that is set meanwhile makes no day of a second.
std::function<double()> WallClock();

inline double Seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }
inline Duration FromSeconds(double seconds) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
}

}  // namespace leeway
