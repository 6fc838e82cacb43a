// Preloaded by tests: the wall clock is a day behind, either always, or in every other three
// seconds if LEEWAY_CLOCK_JUMPS is set. It is never ahead of the system's clock, because a thread
// may wait for a time on that clock.
#include <cstdlib>
#include <ctime>

#include <dlfcn.h>
#include <sys/time.h>

namespace {
constexpr time_t kBehind = 24 * 60 * 60;
constexpr time_t kJumpEvery = 3;
}  // namespace

extern "C" int clock_gettime(clockid_t clock, timespec* now) {
  using Real = int (*)(clockid_t, timespec*);
  static const auto real = reinterpret_cast<Real>(dlsym(RTLD_NEXT, "clock_gettime"));
  const int result = real(clock, now);
  if (result != 0 || clock != CLOCK_REALTIME) return result;
  static const bool jumps = getenv("LEEWAY_CLOCK_JUMPS") != nullptr;
  timespec running = {};
  if (jumps && real(CLOCK_MONOTONIC, &running) == 0 && running.tv_sec / kJumpEvery % 2 == 0) {
    return result;
  }
  now->tv_sec -= kBehind;
  return result;
}
