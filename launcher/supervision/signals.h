// Signals as something to poll.
#pragma once

#include <memory>

#include "absl/status/statusor.h"

namespace leeway {

// Blocks SIGINT, SIGTERM, SIGHUP and SIGWINCH in the calling thread, and so in all that it starts
// later, and ignores SIGPIPE and SIGXFSZ (a closed standard output does not end a run, nor does a
// file that may not grow). What was ignored before stays so: under nohup SIGHUP does not come. Make
// it before any other thread.
class SignalSource {
 public:
  static absl::StatusOr<std::unique_ptr<SignalSource>> Create();
  ~SignalSource();
  SignalSource(const SignalSource&) = delete;
  SignalSource& operator=(const SignalSource&) = delete;

  // Readable when a signal is there.
  int fd() const { return fd_; }
  // The next signal; 0 if there is none.
  int Next();

 private:
  explicit SignalSource(int fd) : fd_(fd) {}
  const int fd_;
};

}  // namespace leeway
