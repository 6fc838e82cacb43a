// Clocks. Code that depends on the time gets it from its caller, so that tests need not wait.
#pragma once

#include <chrono>
#include <functional>

namespace leeway {

using Time = std::chrono::steady_clock::time_point;
using Duration = std::chrono::steady_clock::duration;

inline Time SteadyNow() { return std::chrono::steady_clock::now(); }

// A clock that, unlike Time, also runs while the host is suspended. The holder of a lease uses
// BootClock to decide whether the lease is still valid. The process that granted the lease may use
// Time, because Time never runs ahead of BootClock.
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

// Returns a function that returns the seconds since 1970. WallClock() reads the system's clock
// once, and the function adds the time that has passed since then. So durations are right even if
// somebody sets the system's clock meanwhile.
std::function<double()> WallClock();

inline double Seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }
inline Duration FromSeconds(double seconds) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
}

}  // namespace leeway
