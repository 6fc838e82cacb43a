// Keeps two processes, or two threads, from fetching the same file at once.
#pragma once

#include <string>

#include "common/clock.h"
#include "common/descriptor.h"

namespace leeway {

// Held while it lives, and until the process ends at the latest. It only saves work: a file is
// whole whichever process writes it. So an owner that cannot get the lock goes on without it.
class CopyLock {
 public:
  // Takes the lock for `name`, one of many in the file at `path`. Waits `patience` at most, then
  // goes on without it and logs a warning that has `name`.
  CopyLock(const std::string& path, const std::string& name, Duration patience);

 private:
  const Descriptor file_;
};

}  // namespace leeway
