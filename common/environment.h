// Access to environment variables that tests can replace.
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace leeway {

// Returns the value of a variable; nothing if it is not set, or empty.
using EnvironmentLookup = std::function<std::optional<std::string>(const std::string& name)>;
// Looks in the environment of the process.
std::optional<std::string> LookUpEnvironment(const std::string& name);

}  // namespace leeway
