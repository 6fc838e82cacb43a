// The part of this machine that a process may use: all of it, or the limits of a container.
#pragma once

#include <cstdint>
#include <string>

namespace leeway {

// Returns the system's memory, as limited by the control groups: memory.max of this process's group
// and of the groups above it, or the equivalent in version 1. `root` is the folder that contains
// /proc and /sys, for tests.
uint64_t MachineMemoryBytes(const std::string& root = "");
// Returns the number of processors in the process's affinity, as limited by the quota of its groups
// (cpu.max). A part of a processor counts as one.
uint32_t MachineProcessors(const std::string& root = "");

}  // namespace leeway
