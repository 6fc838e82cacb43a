// Places the threads of this process on processors. Threads run near their device, because copies
// and launches from another CPU socket of the machine cross the link between the sockets. Workers
// may also be restricted to processors that the launcher has chosen.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace leeway {

using Processors = std::set<uint32_t>;

// Parses a list in the kernel's format, such as "0-3,8". Returns nothing if the string is not such
// a list, or names a processor above 65535.
std::optional<Processors> ParseProcessors(absl::string_view text);
std::string ProcessorsText(const Processors& processors);

struct DevicePlace {
  // The processors near the device. Empty if they are not known.
  Processors processors;
  // The device's NUMA node. It is -1 if the node is not known, or the machine has only one.
  int numa_node = -1;
};

// Returns what the kernel reports for the device below `root`/sys/bus/pci/devices. Both fields are
// unknown for a device that is not listed there.
DevicePlace PlaceOf(const std::string& pci_bus_id, const std::string& root = "");

// Returns the processors that are in both `allowed` and `near`. If no processor in `allowed` is
// near, or all of them are, moving threads would not help, and the function returns an empty set.
Processors Nearer(const Processors& near, const Processors& allowed);

// Moves all threads of this process to processors near the device. Threads that they start later
// inherit this placement. Each thread gets only processors that it was allowed to use before.
// LEEWAY_CUDA_PIN=0 turns this off. Returns a line for the log: what was done, or why nothing was
// done.
std::string PinNear(const std::string& pci_bus_id, const std::string& root = "");

// Returns the processors that this thread may use. Empty if the machine has more than a cpu_set_t
// can hold.
Processors AllowedProcessors();

// Returns processors for each of `workers` workers that compute with `threads` threads each. If all
// these threads fit on `allowed`, but twice their number would not, every worker gets processors of
// its own, one for each thread. Without this, the operating system might put two workers on one
// processor while another is idle, because it moves a thread to the processor that has woken the
// thread. In all other cases the result is empty, and all workers stay free to move.
std::vector<Processors> PlaceWorkers(uint32_t workers, uint32_t threads, const Processors& allowed);

// Restricts this thread, and threads that it starts later, to these processors, except threads that
// call LetGo. Returns false if the operating system refuses.
bool KeepTo(const Processors& processors);
// Lets this thread use all processors that the process could use before KeepTo.
void LetGo();

}  // namespace leeway
