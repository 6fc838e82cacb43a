// Short phrases for messages.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace leeway {

// The most elements of a list that a message names.
inline constexpr size_t kNamedMax = 8;

// Returns a list such as "worker 1", "workers 1, 2" or "workers 0, 1, 2, 3, 4, 5, 6, 7 and 12
// more"; an empty string for an empty list. `size` is the length of the list, and `numbers` are its
// first elements.
inline std::string ListOf(const char* what, const std::vector<uint32_t>& numbers, size_t size) {
  std::string text;
  for (size_t i = 0; i < numbers.size() && i < kNamedMax; ++i) {
    if (i == 0) {
      absl::StrAppend(&text, what, numbers.size() > 1 ? "s " : " ", numbers[i]);
    } else {
      absl::StrAppend(&text, ", ", numbers[i]);
    }
  }
  if (size > kNamedMax) absl::StrAppend(&text, " and ", size - kNamedMax, " more");
  return text;
}
inline std::string ListOf(const char* what, const std::vector<uint32_t>& numbers) {
  return ListOf(what, numbers, numbers.size());
}

// Joins two phrases with "and"; if one of them is empty, returns the other one.
inline std::string And(const std::string& a, const std::string& b) {
  return a.empty() || b.empty() ? a + b : absl::StrCat(a, " and ", b);
}

}  // namespace leeway
