// Finds a program by its name, as a shell does.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/environment.h"

namespace leeway {

// Returns a path: `name` itself if it contains a slash, else the first match in the folders of
// PATH. If no such file is executable, returns NOT_FOUND with a message that begins with the name.
absl::StatusOr<std::string> FindProgram(const std::string& name,
                                        const EnvironmentLookup& look_up = LookUpEnvironment);

// Replaces the program's name in the command with its path. NOT_FOUND messages begin with "-- ".
absl::StatusOr<std::vector<std::string>> FindCommand(std::vector<std::string> command);

}  // namespace leeway
