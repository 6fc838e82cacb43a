// The INI files that AWS's tools keep settings in.
#pragma once

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/environment.h"

namespace leeway {

// What AWS_PROFILE says, or default.
std::string ProfileName(const EnvironmentLookup& look_up);

// Where `variable` says, or else ~/.aws/NAME.
std::string ProfilePath(const EnvironmentLookup& look_up, const char* variable, const char* name);

// A section of such a file, with the names of its keys in lower case; empty where there is no such
// section or file.
absl::StatusOr<std::map<std::string, std::string>> ReadProfile(const std::string& path,
                                                               absl::string_view section);

}  // namespace leeway
