// Checks whether the system allows the threads, memory and files that a program is about to need. A
// library that cannot start a thread (such as gRPC) ends the process or hangs, so the program
// checks before.
#pragma once

#include <cstdint>

#include "absl/status/status.h"

namespace leeway {

struct Room {
  // Threads of this process, each with a stack of the usual size.
  uint32_t threads = 0;
  // Further threads and processes that the program starts, and the threads of these processes.
  uint32_t others = 0;
  // Files that are open at the same time.
  uint32_t files = 0;
};

// Call it once, at the start of a program. If an allocation fails and no code handles that, the
// program ends with kExitTemporary and names the limits that are set.
void NameLimitsOfMemory();

// RESOURCE_EXHAUSTED, naming the limits that are set, if threads cannot be started, address space
// is short, or the limit of open files is too low. Starts the threads and ends them again.
absl::Status CheckRoom(const Room& needed);

}  // namespace leeway
