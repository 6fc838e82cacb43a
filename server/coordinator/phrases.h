// Small texts for messages.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace leeway {

// "worker 1", "workers 1, 2", "workers 0, 1, 2, 3, 4, 5, 6, 7 and 12 more"; empty for none.
inline std::string ListOf(const char* what, const std::vector<uint32_t>& numbers) {
  constexpr size_t kNamedMax = 8;
  std::string text;
  for (size_t i = 0; i < numbers.size() && i < kNamedMax; ++i) {
    if (i == 0) {
      absl::StrAppend(&text, what, numbers.size() > 1 ? "s " : " ", numbers[i]);
    } else {
      absl::StrAppend(&text, ", ", numbers[i]);
    }
  }
  if (numbers.size() > kNamedMax)
    absl::StrAppend(&text, " and ", numbers.size() - kNamedMax, " more");
  return text;
}

// The ones that are not empty, with "and" between.
inline std::string And(const std::string& a, const std::string& b) {
  return a.empty() || b.empty() ? a + b : absl::StrCat(a, " and ", b);
}

}  // namespace leeway
