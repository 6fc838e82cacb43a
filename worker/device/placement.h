// Places the threads of this process on processors. Threads run near their device, because copies
// and launches from the other socket of a machine cross the link between the sockets. Workers may
// also be kept to processors that the launcher has chosen.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace leeway {

using Processors = std::set<uint32_t>;

// Parses a list in the kernel's format, such as "0-3,8". Returns nothing if the text is not such a
// list, or names a processor above 65535.
std::optional<Processors> ParseProcessors(absl::string_view text);
std::string ProcessorsText(const Processors& processors);

struct DevicePlace {
  // Empty if they are not known.
  Processors processors;
  // -1 if it is not known, or the machine has only one.
  int numa_node = -1;
};

// Returns what the kernel says of the device below `root`/sys/bus/pci/devices. Both fields are
// unknown for a device that is not listed there.
DevicePlace PlaceOf(const std::string& pci_bus_id, const std::string& root = "");

// Returns the processors of `allowed` that are near. Empty if moving there would not help: none of
// `allowed` is near, or all of them are.
Processors Nearer(const Processors& near, const Processors& allowed);

// Moves all threads of this process, and so those that they will start, to processors near the
// device. Each thread stays within the processors that it may use already. LEEWAY_CUDA_PIN=0 turns
// this off. Returns a line for the log: what was done, or why nothing was done.
std::string PinNear(const std::string& pci_bus_id, const std::string& root = "");

// Returns the processors that this thread may use. Empty if the machine has more than a cpu_set_t
// can hold.
Processors AllowedProcessors();

// Returns processors for each of `workers` workers that compute with `threads` threads each. Every
// worker gets processors of its own, one for each thread, if all fit on `allowed` but would not fit
// twice. In that case the system, which moves a thread to the processor that it was woken from,
// would put two workers on one processor while another is idle. Otherwise the result is empty: all
// workers stay free to move.
std::vector<Processors> PlaceWorkers(uint32_t workers, uint32_t threads, const Processors& allowed);

// Keeps this thread, and those that it will start, to these processors, except threads that call
// LetGo. False if the system refuses.
bool KeepTo(const Processors& processors);
// Lets this thread use all processors that the process could use before KeepTo.
void LetGo();

}  // namespace leeway
