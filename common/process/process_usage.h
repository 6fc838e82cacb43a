// What a process has used, seen from outside.
#pragma once

#include <cstdint>

#include <sys/types.h>

namespace leeway {

// Seconds of processor time of all its threads, including those that have ended. 0 if the process
// is gone.
double ProcessCpuSeconds(pid_t pid);

// The most memory that it has had resident at once (VmHWM, which includes shared memory that it has
// touched). 0 if the process is gone.
uint64_t PeakMemoryBytes(pid_t pid);

// The memory that it has resident now (VmRSS).
uint64_t MemoryBytes(pid_t pid);

// The part of that which is in memfds of other processes: mapped, but not its own. 0 if the system
// does not tell.
uint64_t PeersMemoryBytes(pid_t pid);

}  // namespace leeway
