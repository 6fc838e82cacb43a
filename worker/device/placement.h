// This process's threads on processors: on those near a device, because copies and launches from
// the other socket of a machine cross the link between sockets; and on those that the launcher has
// chosen for a worker.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace leeway {

using Processors = std::set<uint32_t>;

// "0-3,8", as the kernel writes it; nothing if the text is not such a list, or names a processor
// beyond 65535.
std::optional<Processors> ParseProcessors(absl::string_view text);
std::string ProcessorsText(const Processors& processors);

struct DevicePlace {
  // Empty: not known.
  Processors processors;
  // -1: not known, or the machine has one only.
  int numa_node = -1;
};

// As the kernel has it below `root`/sys/bus/pci/devices; nothing is known of a device that is not
// there.
DevicePlace PlaceOf(const std::string& pci_bus_id, const std::string& root = "");

// Those of `allowed` that are near; empty: there is no better place than where the threads are.
Processors Nearer(const Processors& near, const Processors& allowed);

// Moves all threads of this process, and so those that they will start, to processors near the
// device, each within what it may use now, unless LEEWAY_CUDA_PIN is 0. A line for the log: what
// was done, or why nothing.
std::string PinNear(const std::string& pci_bus_id, const std::string& root = "");

// Those that this thread may use; empty where there are more than a cpu_set_t holds.
Processors AllowedProcessors();

// Processors for each of `workers` workers with `threads` that compute: its own, one for each
// thread, where all fit on `allowed` but not with as many to spare. There the system, which moves
// threads to where they were woken from, puts two workers on one processor while another is idle.
// Empty: nobody is kept anywhere.
std::vector<Processors> PlaceWorkers(uint32_t workers, uint32_t threads, const Processors& allowed);

// Keeps this thread, and those that it will start, to these processors; those that give themselves
// back (LetGo) excepted. False if the system refuses.
bool KeepTo(const Processors& processors);
// Lets this thread use all that the process could use before KeepTo.
void LetGo();

}  // namespace leeway
