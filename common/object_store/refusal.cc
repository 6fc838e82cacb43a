#include "common/object_store/refusal.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace leeway {

const Meaning* FindMeaning(std::span<const Meaning> known, absl::string_view name) {
  const auto found = std::find_if(known.begin(), known.end(),
                                  [&](const Meaning& each) { return each.name == name; });
  return found == known.end() ? nullptr : &*found;
}

std::string RefusalText(int http_status, absl::string_view name, absl::string_view message,
                        absl::string_view advice) {
  std::string text = absl::StrCat("HTTP ", http_status);
  if (!name.empty()) absl::StrAppend(&text, ", ", name);
  if (!message.empty()) absl::StrAppend(&text, " (", message, ")");
  if (!advice.empty()) absl::StrAppend(&text, "; ", advice);
  return text;
}

}  // namespace leeway
