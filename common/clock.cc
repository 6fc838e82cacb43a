#include "common/clock.h"

#include <ctime>

namespace leeway {

BootClock::time_point BootClock::now() {
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return time_point(std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec));
}

std::function<double()> WallClock() {
  const BootTime begun = BootClock::now();
  const double then = Seconds(std::chrono::system_clock::now().time_since_epoch());
  return [begun, then] { return then + Seconds(BootClock::now() - begun); };
}

}  // namespace leeway
