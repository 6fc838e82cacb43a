#include "common/machine.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <thread>
#include <vector>

#include <sched.h>
#include <unistd.h>

namespace leeway {
namespace {

// The path of this process's group in the hierarchy of version 2, "/" at its top; empty where there
// is none.
std::string OwnGroup(const std::string& root) {
  constexpr char kVersion2[] = "0::";
  std::ifstream groups(root + "/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    if (line.starts_with(kVersion2)) return line.substr(sizeof(kVersion2) - 1);
  }
  return "";
}

// The file `name` of the group and of each above it. Some may not be there: the top of the whole
// machine bounds nothing, and a container may see less of the hierarchy than the path says.
std::vector<std::string> FilesOf(const std::string& root, const std::string& name) {
  std::vector<std::string> files;
  std::string group = OwnGroup(root);
  while (!group.empty()) {
    if (group.back() == '/') group.pop_back();
    files.push_back(root + "/sys/fs/cgroup" + group + "/" + name);
    group = group.substr(0, group.find_last_of('/') + 1);
  }
  return files;
}

// Those that the affinity (taskset, a cpuset) permits; of more than a cpu_set_t holds, all there
// are.
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
  for (const std::string& file : FilesOf(root, "memory.max")) {
    // A number, or "max".
    uint64_t limit = 0;
    if (std::ifstream(file) >> limit) bytes = std::min(bytes, limit);
  }
  return bytes;
}

uint32_t MachineProcessors(const std::string& root) {
  uint32_t processors = PermittedProcessors();
  for (const std::string& file : FilesOf(root, "cpu.max")) {
    // "QUOTA PERIOD" in microseconds, or "max PERIOD".
    double quota = 0, period = 0;
    if (!(std::ifstream(file) >> quota >> period) || quota <= 0 || period <= 0) continue;
    const double most = std::ceil(quota / period);
    if (most < processors) processors = static_cast<uint32_t>(most);
  }
  return processors;
}

}  // namespace leeway
