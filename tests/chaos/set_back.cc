// Preloaded by meetings.py: the wall clock is a day behind.
#include <ctime>

#include <dlfcn.h>
#include <sys/time.h>

namespace {
constexpr time_t kBehind = 24 * 60 * 60;
}  // namespace

extern "C" int clock_gettime(clockid_t clock, timespec* now) {
  using Real = int (*)(clockid_t, timespec*);
  static const auto real = reinterpret_cast<Real>(dlsym(RTLD_NEXT, "clock_gettime"));
  const int result = real(clock, now);
  if (result == 0 && clock == CLOCK_REALTIME) now->tv_sec -= kBehind;
  return result;
}
