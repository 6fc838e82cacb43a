// Clocks. Time is passed in, so that tests do not wait for it.
#pragma once

#include <chrono>
#include <functional>

namespace leeway {

using Time = std::chrono::steady_clock::time_point;
using Duration = std::chrono::steady_clock::duration;

inline Time SteadyNow() { return std::chrono::steady_clock::now(); }

// Unlike Time's clock, this clock also runs while the host is suspended. The holder of a lease uses
// it to decide whether the lease is still valid. The process that granted the lease may use Time,
// which is never ahead.
struct BootClock {
  using duration = Duration;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<BootClock, duration>;
  static constexpr bool is_steady = true;
  // Reads CLOCK_BOOTTIME.
  static time_point now();
};
using BootTime = BootClock::time_point;

// Returns a function that gives the seconds since 1970. It adds the time passed since this call to
// the system's clock at this call, so setting the clock meanwhile does not make durations wrong.
std::function<double()> WallClock();

inline double Seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }
inline Duration FromSeconds(double seconds) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
}

}  // namespace leeway
