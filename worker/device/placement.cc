#include "worker/device/placement.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>
#include <utility>
#include <vector>

#include <sched.h>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/counted.h"

namespace leeway {
namespace {

constexpr uint32_t kProcessorMax = 65535;

std::string FirstLine(const std::string& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  return std::string(absl::StripAsciiWhitespace(line));
}

// Returns the processors that a thread may use. Empty if the machine has more than a cpu_set_t can
// hold.
Processors AllowedOf(pid_t thread) {
  cpu_set_t set;
  Processors allowed;
  if (sched_getaffinity(thread, sizeof(set), &set) != 0) return allowed;
  for (uint32_t cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) allowed.insert(cpu);
  }
  return allowed;
}

bool Move(pid_t thread, const Processors& processors) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const uint32_t cpu : processors) {
    if (cpu < CPU_SETSIZE) CPU_SET(cpu, &set);
  }
  return sched_setaffinity(thread, sizeof(set), &set) == 0;
}

// Moves all threads of this process, and returns how many were moved.
int MoveThreads(const Processors& near) {
  int moved = 0;
  std::error_code error;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task", error)) {
    pid_t thread = 0;
    if (!absl::SimpleAtoi(task.path().filename().string(), &thread)) continue;
    const Processors nearer = Nearer(near, AllowedOf(thread));
    if (!nearer.empty() && Move(thread, nearer)) ++moved;
  }
  return moved;
}

// The processors that the process could use before KeepTo. They are written before other threads
// start to read them.
Processors& Before() {
  static Processors before;
  return before;
}

// Returns true if `id` can name a device. Only such a string may become part of a path.
bool IsPciBusId(absl::string_view id) {
  return !id.empty() && std::all_of(id.begin(), id.end(), [](char c) {
    return absl::ascii_isxdigit(static_cast<unsigned char>(c)) || c == ':' || c == '.';
  }) && id.front() != '.';
}

}  // namespace

std::optional<Processors> ParseProcessors(absl::string_view text) {
  Processors processors;
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    const std::pair<absl::string_view, absl::string_view> ends =
        absl::StrSplit(part, absl::MaxSplits('-', 1));
    uint32_t first = 0;
    if (!absl::SimpleAtoi(ends.first, &first)) return std::nullopt;
    uint32_t last = first;
    if (part.size() > ends.first.size() && !absl::SimpleAtoi(ends.second, &last)) {
      return std::nullopt;
    }
    if (last < first || last > kProcessorMax) return std::nullopt;
    for (uint32_t cpu = first; cpu <= last; ++cpu) processors.insert(cpu);
  }
  return processors;
}

std::string ProcessorsText(const Processors& processors) {
  std::vector<std::string> parts;
  for (auto at = processors.begin(); at != processors.end();) {
    const uint32_t first = *at;
    uint32_t last = first;
    while (++at != processors.end() && *at == last + 1) ++last;
    parts.push_back(first == last ? absl::StrCat(first) : absl::StrCat(first, "-", last));
  }
  return absl::StrJoin(parts, ",");
}

DevicePlace PlaceOf(const std::string& pci_bus_id, const std::string& root) {
  DevicePlace place;
  if (!IsPciBusId(pci_bus_id)) return place;
  // CUDA writes the letters in upper case, the kernel in lower case.
  const std::string device =
      absl::StrCat(root, "/sys/bus/pci/devices/", absl::AsciiStrToLower(pci_bus_id));
  place.processors = ParseProcessors(FirstLine(device + "/local_cpulist")).value_or(Processors());
  if (!absl::SimpleAtoi(FirstLine(device + "/numa_node"), &place.numa_node)) place.numa_node = -1;
  return place;
}

Processors Nearer(const Processors& near, const Processors& allowed) {
  Processors both;
  std::set_intersection(near.begin(), near.end(), allowed.begin(), allowed.end(),
                        std::inserter(both, both.end()));
  return both.size() == allowed.size() ? Processors() : both;
}

Processors AllowedProcessors() { return AllowedOf(0); }

std::vector<Processors> PlaceWorkers(uint32_t workers, uint32_t threads,
                                     const Processors& allowed) {
  const uint64_t wanted = uint64_t{workers} * threads;
  if (wanted > allowed.size() || 2 * wanted <= allowed.size()) return {};
  std::vector<Processors> places(workers);
  auto next = allowed.begin();
  for (Processors& place : places) {
    while (place.size() < threads) place.insert(*next++);
  }
  return places;
}

bool KeepTo(const Processors& processors) {
  if (Before().empty()) Before() = AllowedOf(0);
  return Move(0, processors);
}

void LetGo() {
  if (!Before().empty()) Move(0, Before());
}

std::string PinNear(const std::string& pci_bus_id, const std::string& root) {
  const auto stay = [](auto&&... why) {
    return absl::StrCat("threads stay on their processors: ", why...);
  };
  const char* const wanted = std::getenv("LEEWAY_CUDA_PIN");
  if (wanted != nullptr && absl::string_view(wanted) == "0") return stay("LEEWAY_CUDA_PIN is 0");
  const DevicePlace place = PlaceOf(pci_bus_id, root);
  if (place.processors.empty()) {
    return stay("the processors near the GPU (PCI ", pci_bus_id, ") are not known");
  }
  const Processors allowed = AllowedOf(0);
  const Processors nearer = Nearer(place.processors, allowed);
  if (nearer.empty()) {
    return stay(ProcessorsText(allowed), "; those near the GPU (PCI ", pci_bus_id, ") are ",
                ProcessorsText(place.processors));
  }
  const int moved = MoveThreads(place.processors);
  if (moved == 0) return stay("the operating system refuses to move them: ", std::strerror(errno));
  return absl::StrCat(Counted(static_cast<uint64_t>(moved), "thread"),
                      " moved to the processors near the GPU (PCI ", pci_bus_id,
                      place.numa_node < 0 ? "" : absl::StrCat(", NUMA node ", place.numa_node),
                      "): ", ProcessorsText(nearer));
}

}  // namespace leeway
