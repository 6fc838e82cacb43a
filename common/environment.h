// Variables of the process's environment, in a form in which tests bring their own.
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace leeway {

// The value of a variable; nothing if it is not set, or empty.
using EnvironmentLookup = std::function<std::optional<std::string>(const std::string& name)>;
// In the process's own.
std::optional<std::string> LookUpEnvironment(const std::string& name);

}  // namespace leeway
