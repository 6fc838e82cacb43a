// Suggests the known word that a user probably meant.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace leeway {

// Returns the end of an error message: "; did you mean 'staleness'?" if a known word is similar to
// `word`, otherwise "; use one of a, b, c".
std::string Suggestion(std::string_view word, const std::vector<std::string>& known);

}  // namespace leeway
