// Tells when a child process has ended.
#pragma once

#include <memory>
#include <thread>

#include <sys/types.h>

#include "absl/status/statusor.h"

namespace leeway {

// Uses a pidfd. If the system refuses one (a kernel before 5.3, a container's filter of system
// calls), a thread waits for the child.
class ExitWatch {
 public:
  static absl::StatusOr<std::unique_ptr<ExitWatch>> Begin(pid_t child);
  // The child must have ended before this.
  ~ExitWatch();
  ExitWatch(const ExitWatch&) = delete;
  ExitWatch& operator=(const ExitWatch&) = delete;

  // Readable once the child has ended. The child must still be collected then.
  int fd() const { return fd_; }

 private:
  explicit ExitWatch(int fd) : fd_(fd) {}

  const int fd_;
  // Not used with a pidfd.
  std::thread waiting_;
};

}  // namespace leeway
