// Suggests the word that the user meant.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace leeway {

// Returns "; did you mean 'staleness'?" if a known word is similar, else "; use one of a, b, c".
std::string Suggestion(std::string_view word, const std::vector<std::string>& known);

}  // namespace leeway
