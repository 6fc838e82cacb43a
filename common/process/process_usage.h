// Measures the processor time and the memory of another process.
#pragma once

#include <cstdint>

#include <sys/types.h>

namespace leeway {

// Returns the seconds of processor time of all threads of the process, including threads that have
// ended. Returns 0 if the process is gone.
double ProcessCpuSeconds(pid_t pid);

// Returns the most memory that the process has had resident at one time (VmHWM, which includes the
// shared memory that it has touched). Returns 0 if the process is gone.
uint64_t PeakMemoryBytes(pid_t pid);

// Returns the memory that the process has resident now (VmRSS).
uint64_t MemoryBytes(pid_t pid);

// Returns how many of the MemoryBytes are in memfds that the process has mapped and other processes
// own. Returns 0 if the system does not report this.
uint64_t PeersMemoryBytes(pid_t pid);

}  // namespace leeway
