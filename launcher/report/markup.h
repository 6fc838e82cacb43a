// Text into XML and HTML.
#pragma once

#include <string>
#include <string_view>

namespace leeway {

// &, <, >, " and ' as entities; control characters that XML does not allow become "?".
std::string EscapeMarkup(std::string_view text);

}  // namespace leeway
