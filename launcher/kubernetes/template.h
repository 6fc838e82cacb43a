// Fills in text templates, such as those of deploy/kubernetes. Pure.
#pragma once

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace leeway {

// Strings by name. An empty string is a valid value, but counts as false in a condition.
using TemplateValues = std::map<std::string, std::string, std::less<>>;

// Replaces the markup, line by line:
//   ${name}      within a line: is replaced by the text
//   @name        a line of its own: is replaced by the lines of the text, each indented like this
//                line; by nothing if the text is empty
//   @if a !b     the lines up to the next @end stay if a is not empty and b is; conditions nest
// Returns INTERNAL, with the line's number, if a name is unknown or an @if has no @end.
absl::StatusOr<std::string> FillTemplate(absl::string_view text, const TemplateValues& values);

}  // namespace leeway
