// Escapes text for XML and HTML.
#pragma once

#include <string>
#include <string_view>

namespace leeway {

// Writes &, <, >, " and ' as entities, and control characters that XML does not allow as "?".
std::string EscapeMarkup(std::string_view text);

}  // namespace leeway
