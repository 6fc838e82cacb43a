#include "common/control_groups.h"

#include <fstream>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace leeway {
namespace {

constexpr char kGroups[] = "/sys/fs/cgroup";

// Appends the path of file `name` in a group and in each group above it.
void AddFiles(const std::string& hierarchy, std::string group, const std::string& name,
              std::vector<std::string>& files) {
  while (!group.empty()) {
    if (group.back() == '/') group.pop_back();
    files.push_back(absl::StrCat(hierarchy, group, "/", name));
    group = group.substr(0, group.find_last_of('/') + 1);
  }
}

}  // namespace

std::vector<std::string> FilesOfGroups(const std::string& root, const std::string& controller,
                                       const std::string& name, const std::string& older_name) {
  std::vector<std::string> files;
  std::ifstream groups(root + "/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    // The form is NUMBER:CONTROLLER,...:PATH. Version 2 has no controllers there.
    const std::vector<std::string> parts = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() != 3) continue;
    const std::vector<std::string> controllers = absl::StrSplit(parts[1], ',');
    if (parts[1].empty()) {
      AddFiles(root + kGroups, parts[2], name, files);
    } else if (absl::c_linear_search(controllers, controller)) {
      AddFiles(absl::StrCat(root, kGroups, "/", controller), parts[2], older_name, files);
    }
  }
  return files;
}

std::optional<ProcessLimit> ProcessLimitOfGroups(const std::string& root) {
  std::optional<ProcessLimit> tightest;
  for (const std::string& file : FilesOfGroups(root, "pids", "pids.max", "pids.max")) {
    // The file has a number, or "max".
    uint64_t limit = 0;
    if (!(std::ifstream(file) >> limit)) continue;
    if (!tightest || limit < tightest->processes) tightest = {limit, file};
  }
  return tightest;
}

}  // namespace leeway
