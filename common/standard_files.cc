// Standard input, output and error that are closed become /dev/null in every program. Else the next
// file or socket would have such a number, and whatever is printed would go there.
//
// Before the libraries are initialised, which open files by then (gRPC's has an eventfd), and so
// before what a sanitizer needs: by system calls alone.
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace {

[[gnu::no_sanitize("address", "thread", "undefined")]] void OpenStandardFiles(int, char**, char**) {
  for (int number = STDIN_FILENO; number <= STDERR_FILENO; ++number) {
    // The lowest free number is the one looked at: those below it are open.
    const bool closed = syscall(SYS_fcntl, number, F_GETFD) < 0;
    if (closed && syscall(SYS_openat, AT_FDCWD, "/dev/null", O_RDWR) < 0) return;
  }
}

[[gnu::section(".preinit_array"), gnu::used]] void (*before_libraries)(int, char**,
                                                                       char**) = OpenStandardFiles;

}  // namespace
