// Keeps two processes, or two threads, from fetching the same file at once.
#pragma once

#include <string>

#include "common/clock.h"
#include "common/descriptor.h"

namespace leeway {

// The lock is held while the object lives, and is released when the process ends. It only saves
// work: a file is written whole, whichever process writes it. So an owner that cannot get the lock
// continues without it.
class CopyLock {
 public:
  // Takes the lock for `name`, one of many in the file at `path`. Waits at most `patience`, then
  // continues without the lock and logs a warning that has `name`.
  CopyLock(const std::string& path, const std::string& name, Duration patience);

 private:
  const Descriptor file_;
};

}  // namespace leeway
