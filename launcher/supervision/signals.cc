#include "launcher/supervision/signals.h"

#include <cerrno>
#include <cstring>

#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "common/process/this_process.h"

namespace leeway {

absl::StatusOr<std::unique_ptr<SignalSource>> SignalSource::Create() {
  SurviveWrites();
  sigset_t set;
  sigemptyset(&set);
  for (int number : {SIGINT, SIGTERM, SIGHUP, SIGWINCH}) {
    struct sigaction now {};
    // A signalfd would receive even signals that nohup, or a shell for its background jobs, has set
    // to be ignored.
    if (sigaction(number, nullptr, &now) == 0 && now.sa_handler == SIG_IGN) continue;
    sigaddset(&set, number);
  }
  if (pthread_sigmask(SIG_BLOCK, &set, nullptr) != 0) {
    return absl::InternalError("blocking signals failed");
  }
  const int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  if (fd < 0) return absl::InternalError(absl::StrCat("signalfd: ", strerror(errno)));
  return std::unique_ptr<SignalSource>(new SignalSource(fd));
}

SignalSource::~SignalSource() { close(fd_); }

int SignalSource::Next() {
  signalfd_siginfo info{};
  if (read(fd_, &info, sizeof(info)) != sizeof(info)) return 0;
  return static_cast<int>(info.ssi_signo);
}

}  // namespace leeway
