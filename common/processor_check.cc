// The programs are built for x86-64-v3 (CMake: LEEWAY_ARCH). On an older processor an illegal
// instruction would end the programs. This check runs before all other code and reports the reason.
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
      "leeway: this processor lacks AVX2, FMA or BMI2 (x86-64-v3), which this build needs; for "
      "this processor, build with cmake -DLEEWAY_ARCH=x86-64\n";
  [[maybe_unused]] ssize_t written = write(STDERR_FILENO, message, std::strlen(message));
  _exit(78);
}
#endif

}  // namespace
