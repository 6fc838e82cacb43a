// The limits of this process's control group and of the groups above it, in both versions of the
// hierarchy.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace leeway {

// `root` is the folder that contains /proc and /sys, for tests.

// Returns the paths of files in this process's groups: `name` in the hierarchy of version 2, and
// `older_name` in the hierarchy of version 1 that has `controller`. Some may not exist: the root
// group has no limits, and a container may see a part of the hierarchy only.
std::vector<std::string> FilesOfGroups(const std::string& root, const std::string& controller,
                                       const std::string& name, const std::string& older_name);

// How many processes and threads the tightest group may have, and the group. Absent: no group sets
// a limit.
struct ProcessLimit {
  uint64_t processes = 0;
  // The group's file: ".../pids.max".
  std::string file;
};
std::optional<ProcessLimit> ProcessLimitOfGroups(const std::string& root = "");

}  // namespace leeway
