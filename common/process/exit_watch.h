// Reports when a child process has ended.
#pragma once

#include <memory>
#include <thread>

#include <sys/types.h>

#include "absl/status/statusor.h"

namespace leeway {

// Uses a pidfd. If the system refuses to create one (because of a kernel before 5.3, or a
// container's filter of system calls), a thread waits for the child.
class ExitWatch {
 public:
  static absl::StatusOr<std::unique_ptr<ExitWatch>> Begin(pid_t child);
  // The child must have ended before the destructor runs.
  ~ExitWatch();
  ExitWatch(const ExitWatch&) = delete;
  ExitWatch& operator=(const ExitWatch&) = delete;

  // Returns a descriptor that becomes readable when the child has ended. The caller must still
  // collect the child then.
  int fd() const { return fd_; }

 private:
  explicit ExitWatch(int fd) : fd_(fd) {}

  const int fd_;
  // The thread that waits for the child, if there is no pidfd.
  std::thread waiting_;
};

}  // namespace leeway
