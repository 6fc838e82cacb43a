// Tells when a child process has ended.
#pragma once

#include <memory>
#include <thread>

#include <sys/types.h>

#include "absl/status/statusor.h"

namespace leeway {

// By a pidfd, or where the system refuses one (a kernel before 5.3, a container's filter of system
// calls) by a thread that waits for the child.
class ExitWatch {
 public:
  static absl::StatusOr<std::unique_ptr<ExitWatch>> Begin(pid_t child);
  // The child has ended.
  ~ExitWatch();
  ExitWatch(const ExitWatch&) = delete;
  ExitWatch& operator=(const ExitWatch&) = delete;

  // Readable from the child's end on; the child is still there to be collected.
  int fd() const { return fd_; }

 private:
  explicit ExitWatch(int fd) : fd_(fd) {}

  const int fd_;
  // None with a pidfd.
  std::thread waiting_;
};

}  // namespace leeway
