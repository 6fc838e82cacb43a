#include "common/machine.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <thread>

#include <sched.h>
#include <unistd.h>

#include "absl/strings/str_replace.h"
#include "common/control_groups.h"

namespace leeway {
namespace {

// Returns the number of processors to which a group's quota amounts, or 0 if there is no limit. In
// version 2 the file has "QUOTA PERIOD" in microseconds, or "max PERIOD". Version 1 has separate
// files for quota and period, and there a quota of -1 means no limit.
double ProcessorsPaid(const std::string& file) {
  double quota = 0, period = 0;
  std::ifstream numbers(file);
  numbers >> quota;
  if (file.ends_with("_quota_us")) {
    std::ifstream(absl::StrReplaceAll(file, {{"_quota_us", "_period_us"}})) >> period;
  } else {
    numbers >> period;
  }
  return quota > 0 && period > 0 ? quota / period : 0;
}

// Returns the number of processors that the affinity (taskset, a cpuset) permits. If the machine
// has more processors than a cpu_set_t can represent, returns the number of all processors.
uint32_t PermittedProcessors() {
  cpu_set_t permitted;
  if (sched_getaffinity(0, sizeof(permitted), &permitted) == 0) {
    return static_cast<uint32_t>(CPU_COUNT(&permitted));
  }
  return std::max(std::thread::hardware_concurrency(), 1u);
}

}  // namespace

uint64_t MachineMemoryBytes(const std::string& root) {
  uint64_t bytes =
      static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  for (const std::string& file :
       FilesOfGroups(root, "memory", "memory.max", "memory.limit_in_bytes")) {
    // The file has a number, or "max".
    uint64_t limit = 0;
    if (std::ifstream(file) >> limit) bytes = std::min(bytes, limit);
  }
  return bytes;
}

uint32_t MachineProcessors(const std::string& root) {
  uint32_t processors = PermittedProcessors();
  for (const std::string& file : FilesOfGroups(root, "cpu", "cpu.max", "cpu.cfs_quota_us")) {
    const double most = std::ceil(ProcessorsPaid(file));
    if (most > 0 && most < processors) processors = static_cast<uint32_t>(most);
  }
  return processors;
}

}  // namespace leeway
