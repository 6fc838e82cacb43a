// Checks whether the operating system allows the threads, memory and files that a program will
// need. The program checks this at its start, because some libraries (such as gRPC) end the process
// or hang if they cannot start a thread.
#pragma once

#include <cstdint>

#include "absl/status/status.h"

namespace leeway {

struct Room {
  // The number of threads of this process, each with a stack of the default size.
  uint32_t threads = 0;
  // The number of further tasks that the system must allow: threads with small stacks, processes
  // that the program starts, and the threads in these processes.
  uint32_t others = 0;
  // The number of files that are open at the same time.
  uint32_t files = 0;
};

// Call this function once, at the start of a program. From then on, if an allocation fails and no
// code handles the failure, the program names the limits that are set and ends with kExitTemporary.
void NameLimitsOfMemory();

// Tests the limits: starts this number of threads and ends them again. Returns RESOURCE_EXHAUSTED,
// naming the limits that are set, if they are too low for the threads, the address space or the
// open files.
absl::Status CheckRoom(const Room& needed);

}  // namespace leeway
