// Text with places that are filled, as the templates of deploy/kubernetes are. Pure.
#pragma once

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace leeway {

// Texts by their names. An empty one is there, and holds for nothing in a condition.
using TemplateValues = std::map<std::string, std::string, std::less<>>;

// Line by line:
//   ${name}      stands for a text, within a line
//   @name        a line of its own: the lines of a text, each as far to the right as this one is;
//                an empty text is no line
//   @if a !b     lines to the next @end are there where a is not empty and b is; conditions nest
// INTERNAL, with the line's number, for a name that is not known or an @if without its @end.
absl::StatusOr<std::string> FillTemplate(absl::string_view text, const TemplateValues& values);

}  // namespace leeway
