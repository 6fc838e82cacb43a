// What a process said last.
#pragma once

#include <string>

namespace leeway {

// The last lines of a log under its path, to follow a message about its process; says so if there
// are none. Control characters are escaped.
std::string LogTail(const std::string& path, size_t lines);

// The last line of a log, such as the exception that ended a script; control characters are
// escaped, and a long line is cut. Empty if there is none.
std::string LastLine(const std::string& path);

}  // namespace leeway
