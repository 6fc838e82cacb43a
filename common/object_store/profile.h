// Reads the INI files in which AWS's tools keep settings.
#pragma once

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/environment.h"

namespace leeway {

// Returns the value of AWS_PROFILE, or "default".
std::string ProfileName(const EnvironmentLookup& look_up);

// Returns the path in `variable`. If the variable is not set, returns ~/.aws/NAME.
std::string ProfilePath(const EnvironmentLookup& look_up, const char* variable, const char* name);

// Reads a section of such a file. The result maps the names of the keys, in lower case, to their
// values. It is empty if the file or the section does not exist.
absl::StatusOr<std::map<std::string, std::string>> ReadProfile(const std::string& path,
                                                               absl::string_view section);

}  // namespace leeway
