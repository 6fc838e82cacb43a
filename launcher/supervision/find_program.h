// A program by its name, as a shell finds it.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/environment.h"

namespace leeway {

// A path: the name itself if there is a slash in it, else the first in the folders of PATH.
// NOT_FOUND, beginning with the name, if there is none that can be executed.
absl::StatusOr<std::string> FindProgram(const std::string& name,
                                        const EnvironmentLookup& look_up = LookUpEnvironment);

// A command with the program's path in the place of its name. NOT_FOUND, beginning with "-- ".
absl::StatusOr<std::vector<std::string>> FindCommand(std::vector<std::string> command);

}  // namespace leeway
