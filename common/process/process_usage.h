// What a process has used, seen from outside.
#pragma once

#include <cstdint>

#include <sys/types.h>

namespace leeway {

// Seconds of processor time of all its threads, also of those that have ended; 0 if it is gone.
double ProcessCpuSeconds(pid_t pid);

// The most memory it has had resident at once (VmHWM, shared memory that it has touched included);
// 0 if it is gone.
uint64_t PeakMemoryBytes(pid_t pid);

// What it has resident now (VmRSS).
uint64_t MemoryBytes(pid_t pid);

// Of that, what lies in memfds of other processes: mapped, but not its own. Zero where the system
// does not say.
uint64_t PeersMemoryBytes(pid_t pid);

}  // namespace leeway
