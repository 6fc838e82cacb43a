#include "common/suggestion.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace leeway {
namespace {

// Returns the least number of insertions, deletions, substitutions and swaps of neighbours that
// turn `a` into `b` (the distance of Damerau and Levenshtein, in the restricted form).
size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> before(b.size() + 1), above(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) above[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t substitute = above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, substitute});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
    std::swap(before, above);
    std::swap(above, row);
  }
  return above[b.size()];
}

}  // namespace

std::string Suggestion(std::string_view word, const std::vector<std::string>& known) {
  // Ignore long words, because the distance takes quadratic time and no known word is that long.
  constexpr size_t kWordMax = 64;
  const std::string lower = absl::AsciiStrToLower(std::string(word.substr(0, kWordMax + 1)));
  const std::string* best = nullptr;
  size_t best_distance = 0;
  for (const std::string& candidate : known) {
    if (lower.size() > kWordMax) break;
    const size_t distance = EditDistance(lower, absl::AsciiStrToLower(candidate));
    if (distance > std::max<size_t>(1, candidate.size() / 3)) continue;
    if (best == nullptr || distance < best_distance) {
      best = &candidate;
      best_distance = distance;
    }
  }
  if (best != nullptr) return absl::StrCat("; did you mean '", *best, "'?");
  if (known.empty()) return "; no key is allowed here";
  return absl::StrCat("; use one of ", absl::StrJoin(known, ", "));
}

}  // namespace leeway
