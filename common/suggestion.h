// The word that was meant.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace leeway {

// "; did you mean 'staleness'?" if a known word is near, else "; known are a, b, c".
std::string Suggestion(std::string_view word, const std::vector<std::string>& known);

}  // namespace leeway
