// What bounds this process's control group and those above it, in either version of the hierarchy.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace leeway {

// `root` is where /proc and /sys are looked for: a test's folder.

// Of this process's groups: `name` in the hierarchy of version 2, and `older_name` in that of
// version 1 that has `controller`. Some may not be there: the top of the whole machine bounds
// nothing, and a container may see less of the hierarchy than the path says.
std::vector<std::string> FilesOfGroups(const std::string& root, const std::string& controller,
                                       const std::string& name, const std::string& older_name);

// Processes and threads that the tightest group may have, and which it is; absent: as many as the
// system can.
struct ProcessLimit {
  uint64_t processes = 0;
  // Its file: ".../pids.max".
  std::string file;
};
std::optional<ProcessLimit> ProcessLimitOfGroups(const std::string& root = "");

}  // namespace leeway
