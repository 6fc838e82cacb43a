// The programs are built for x86-64-v3 (CMake: LEEWAY_ARCH). An older processor would kill them
// with an illegal instruction. This check reports that before any other code runs.
#include <cstring>

#include <unistd.h>

namespace {

#if !defined(LEEWAY_ANY_PROCESSOR)
[[gnu::constructor(101)]] void RefuseOldProcessor() {
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
      __builtin_cpu_supports("bmi2")) {
    return;
  }
  const char message[] =
      "leeway: this processor lacks AVX2, FMA or BMI2 (x86-64-v3), which this build needs; build "
      "with cmake -DLEEWAY_ARCH=x86-64 for it\n";
  [[maybe_unused]] ssize_t written = write(STDERR_FILENO, message, std::strlen(message));
  _exit(78);
}
#endif

}  // namespace
