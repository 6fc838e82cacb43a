// What a process said last.
#pragma once

#include <string>

namespace leeway {

// The last lines of a log under its path, to follow a message about its process; says so if there
// are none.
std::string LogTail(const std::string& path, size_t lines);

}  // namespace leeway
