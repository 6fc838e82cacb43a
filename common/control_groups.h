// The limits of this process's control group and of the groups above it, in versions 1 and 2 of
// Linux control groups.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace leeway {

// In these functions `root` is the folder that contains /proc and /sys. Tests set it.

// Returns the paths of files in this process's groups. The files are called `name` in version 2,
// and `older_name` in the version 1 hierarchy of `controller`. Some of them may not exist, because
// the root group has no limits and a container may see only a part of the hierarchy.
std::vector<std::string> FilesOfGroups(const std::string& root, const std::string& controller,
                                       const std::string& name, const std::string& older_name);

// The lowest limit on processes and threads, and the file that sets it.
struct ProcessLimit {
  uint64_t processes = 0;
  // The file that sets the limit, such as ".../pids.max".
  std::string file;
};
std::optional<ProcessLimit> ProcessLimitOfGroups(const std::string& root = "");

}  // namespace leeway
