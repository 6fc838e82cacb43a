// What of this machine a process may use: all of it, or what a container leaves.
#pragma once

#include <cstdint>
#include <string>

namespace leeway {

// As control groups (memory.max and cpu.max of this process's group and of those above it, or what
// they are called in version 1) bound what the system has. `root` is where /proc
// and /sys are looked for: a test's folder.
uint64_t MachineMemoryBytes(const std::string& root = "");
// Those of the process's affinity, as far as its groups pay for them; a part of a processor counts
// as one.
uint32_t MachineProcessors(const std::string& root = "");

}  // namespace leeway
