// Whether the system lets a program have what it is about to need. A library that cannot start a
// thread, as gRPC, ends the process or stands still; so it is found out before.
#pragma once

#include <cstdint>

#include "absl/status/status.h"

namespace leeway {

struct Room {
  // Of this process, each with a stack of the usual size.
  uint32_t threads = 0;
  // Beside those: threads and processes that it starts, and theirs.
  uint32_t others = 0;
  // Open at the same time.
  uint32_t files = 0;
};

// Once, at the start of a program: where memory is refused and nobody deals with that, the program
// ends with kExitTemporary and names the limits that are set.
void NameLimitsOfMemory();

// RESOURCE_EXHAUSTED, naming the limits that are set: threads cannot be started, address space is
// short, or the limit of open files is below what is needed. Starts the threads, and ends them.
absl::Status CheckRoom(const Room& needed);

}  // namespace leeway
