// Writes a count with its noun, in the singular or the plural.
#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace leeway {

// Returns "1 server", "3 servers", "0 batches". `noun` is singular.
inline std::string Counted(uint64_t count, absl::string_view noun) {
  const bool hisses = noun.size() >= 2 && (noun.substr(noun.size() - 2) == "ch" ||
                                           noun.back() == 's' || noun.back() == 'x');
  return absl::StrCat(count, " ", noun, count == 1 ? "" : hisses ? "es" : "s");
}

}  // namespace leeway
