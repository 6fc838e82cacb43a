#include "common/process/exit_watch.h"

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <system_error>

#include <spdlog/spdlog.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"

namespace leeway {
namespace {

absl::Status WatchError(const char* call, int error) {
  return absl::InternalError(absl::StrCat(call, ": ", strerror(error)));
}

void WarnOfPidfd(int error) {
  static std::atomic<bool> warned{false};
  if (warned.exchange(true)) return;
  spdlog::warn("pidfd_open: {}; a thread waits for each process instead", strerror(error));
}

void WaitAndTell(pid_t child, int fd) {
  siginfo_t info{};
  while (waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT) != 0 && errno == EINTR) {
  }
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(fd, &one, sizeof(one));
}

}  // namespace

absl::StatusOr<std::unique_ptr<ExitWatch>> ExitWatch::Begin(pid_t child) {
  // Use the system call and not glibc's pidfd_open, because Debian 12's header declares that
  // function for C only.
  const int pidfd = static_cast<int>(syscall(SYS_pidfd_open, child, 0));
  if (pidfd >= 0) return std::unique_ptr<ExitWatch>(new ExitWatch(pidfd));
  const int error = errno;
  if (error != ENOSYS && error != EPERM && error != EACCES) return WatchError("pidfd_open", error);
  WarnOfPidfd(error);
  const int told = eventfd(0, EFD_CLOEXEC);
  if (told < 0) return WatchError("eventfd", errno);
  std::unique_ptr<ExitWatch> watch(new ExitWatch(told));
  try {
    watch->waiting_ = std::thread(WaitAndTell, child, told);
  } catch (const std::system_error& failed) {
    return WatchError("starting a thread that waits", failed.code().value());
  }
  return watch;
}

ExitWatch::~ExitWatch() {
  if (waiting_.joinable()) waiting_.join();
  close(fd_);
}

}  // namespace leeway
