// Opens /dev/null in place of a standard input, output or error that is closed, in every program.
// Otherwise the next file or socket would get the number 0, 1 or 2, and would receive the program's
// output.
//
// This runs before the libraries are initialised, because they open files then (gRPC an eventfd).
// It also runs before the sanitizers are ready, so it uses system calls only.
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace {

[[gnu::no_sanitize("address", "thread", "undefined")]] void OpenStandardFiles(int, char**, char**) {
  for (int number = STDIN_FILENO; number <= STDERR_FILENO; ++number) {
    // openat uses the lowest free number. That is `number`, because those below it are open.
    const bool closed = syscall(SYS_fcntl, number, F_GETFD) < 0;
    if (closed && syscall(SYS_openat, AT_FDCWD, "/dev/null", O_RDWR) < 0) return;
  }
}

[[gnu::section(".preinit_array"), gnu::used]] void (*before_libraries)(int, char**,
                                                                       char**) = OpenStandardFiles;

}  // namespace
