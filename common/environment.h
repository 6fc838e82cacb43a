// Reads environment variables. Tests can replace the lookup with their own.
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace leeway {

// Returns the value of a variable. Returns nothing if the variable is not set or is empty.
using EnvironmentLookup = std::function<std::optional<std::string>(const std::string& name)>;
std::optional<std::string> LookUpEnvironment(const std::string& name);

}  // namespace leeway
