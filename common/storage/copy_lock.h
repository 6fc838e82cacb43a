// Keeps two processes, or two threads, from fetching the same file at once.
#pragma once

#include <string>

#include "common/clock.h"
#include "common/descriptor.h"

namespace leeway {

// Held while it lives, and until the process ends at the latest. Only saves work: a file is whole
// whoever writes it. So where the lock cannot be had, its owner goes on without it.
class CopyLock {
 public:
  // One of the many locks of the file at `path`: `name`'s. Waits `patience` at most.
  CopyLock(const std::string& path, const std::string& name, Duration patience);

 private:
  const Descriptor file_;
};

}  // namespace leeway
