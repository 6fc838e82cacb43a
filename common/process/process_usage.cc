#include "common/process/process_usage.h"

#include <ctime>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include <sys/stat.h>

namespace leeway {
namespace {

// Returns a field of /proc/PID/status. The file has kibibytes, and the result is in bytes.
uint64_t FromStatus(pid_t pid, const std::string& field) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  std::string key;
  while (status >> key) {
    uint64_t kibibytes = 0;
    if (key == field && status >> kibibytes) return kibibytes << 10;
    status.ignore(1 << 16, '\n');
  }
  return 0;
}

// Returns the inodes of the process's open files. They show which memfds belong to the process. The
// owner of a memfd keeps it open. A peer that has mapped the memfd may have closed it.
std::set<uint64_t> OpenInodes(pid_t pid) {
  std::set<uint64_t> inodes;
  std::error_code error;
  const std::string folder = "/proc/" + std::to_string(pid) + "/fd";
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    struct stat file {};
    if (stat(entry.path().c_str(), &file) == 0) inodes.insert(file.st_ino);
  }
  return inodes;
}

}  // namespace

double ProcessCpuSeconds(pid_t pid) {
  clockid_t clock;
  timespec time{};
  if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &time) != 0) return 0;
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

uint64_t PeakMemoryBytes(pid_t pid) { return FromStatus(pid, "VmHWM:"); }
uint64_t MemoryBytes(pid_t pid) { return FromStatus(pid, "VmRSS:"); }

uint64_t PeersMemoryBytes(pid_t pid) {
  const std::set<uint64_t> own = OpenInodes(pid);
  std::ifstream maps("/proc/" + std::to_string(pid) + "/smaps");
  uint64_t bytes = 0;
  bool foreign = false;
  for (std::string line; std::getline(maps, line);) {
    std::istringstream words(line);
    std::string first;
    words >> first;
    uint64_t kibibytes = 0;
    // The first line of a mapping has its range, rights, offset, device, inode and path.
    if (first.back() != ':') {
      std::string rights, offset, device, path;
      uint64_t inode = 0;
      words >> rights >> offset >> device >> inode >> path;
      foreign = path.rfind("/memfd:", 0) == 0 && !own.contains(inode);
    } else if (foreign && first == "Rss:" && words >> kibibytes) {
      bytes += kibibytes << 10;
    }
  }
  return bytes;
}

}  // namespace leeway
