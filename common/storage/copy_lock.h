// Prevents two processes, or two threads, from fetching the same file at the same time.
#pragma once

#include <string>

#include "common/clock.h"
#include "common/descriptor.h"

namespace leeway {

// Holds the lock while the object lives. The lock is also released when the process ends. The lock
// only saves work, because each process writes the file atomically. So a process that cannot get
// the lock continues without it.
class CopyLock {
 public:
  // Takes the lock for `name`. The file at `path` has the locks for all names. Waits for at most
  // `patience`, and then continues without the lock and logs a warning that contains `name`.
  CopyLock(const std::string& path, const std::string& name, Duration patience);

 private:
  const Descriptor file_;
};

}  // namespace leeway
