// Signals as events of a file descriptor.
#pragma once

#include <memory>

#include "absl/status/statusor.h"

namespace leeway {

// Blocks SIGINT, SIGTERM, SIGHUP and SIGWINCH in the calling thread, and so in all threads and
// processes that it starts later. Ignores SIGPIPE and SIGXFSZ, so that a run survives a closed
// standard output or a file that may not grow. Signals that were ignored before stay ignored. For
// example, under nohup SIGHUP does not arrive. Create this object before any other thread.
class SignalSource {
 public:
  static absl::StatusOr<std::unique_ptr<SignalSource>> Create();
  ~SignalSource();
  SignalSource(const SignalSource&) = delete;
  SignalSource& operator=(const SignalSource&) = delete;

  // Returns a file descriptor that is readable when a signal is pending.
  int fd() const { return fd_; }
  // Returns the next signal, or 0 if no signal is pending.
  int Next();

 private:
  explicit SignalSource(int fd) : fd_(fd) {}
  const int fd_;
};

}  // namespace leeway
