// The memory and the processors that this process may use: those of the machine, or fewer in a
// container.
#pragma once

#include <cstdint>
#include <string>

namespace leeway {

// Returns the bytes of memory that this process may use. That is the machine's memory, unless a
// control group sets a lower limit: memory.max of this process's group or of a group above it, or
// the equivalent in version 1. `root` is the folder that contains /proc and /sys, for tests.
uint64_t MachineMemoryBytes(const std::string& root = "");
// Returns the number of processors that this process may use. That is the number in the process's
// affinity, unless a control group sets a lower quota (cpu.max). A fraction of a processor counts
// as a whole one.
uint32_t MachineProcessors(const std::string& root = "");

}  // namespace leeway
