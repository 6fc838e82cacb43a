// The last lines of a process's log.
#pragma once

#include <string>

namespace leeway {

// Returns the log's path and below it the last lines, to follow a message about the process. If the
// log has no lines, the result says so. Control characters are escaped.
std::string LogTail(const std::string& path, size_t lines);

// Returns the last line of a log, such as the exception that ended a script. Control characters are
// escaped, and a long line is cut. Returns an empty string if the log has no lines.
std::string LastLine(const std::string& path);

}  // namespace leeway
