#include "config/problems.h"

#include <algorithm>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "common/printable.h"

namespace leeway {
namespace {

// The largest number of lines in an error. With more lines the first ones would scroll out of the
// terminal.
constexpr size_t kShownMax = 20;

}  // namespace

std::string Describe(const Origin& origin, std::string_view path, std::string_view message) {
  std::string text = Printable(origin.source == nullptr ? "job" : origin.source->name);
  if (origin.line > 0) absl::StrAppend(&text, ":", origin.line, ":", origin.column);
  const bool repeats =
      origin.source != nullptr && origin.source->is_override && origin.source->path == path;
  if (!path.empty() && !repeats) absl::StrAppend(&text, ": ", Printable(std::string(path)));
  absl::StrAppend(&text, ": ", Printable(std::string(message)));
  return text;
}

void Problems::Add(const Origin& origin, const std::string& path, std::string_view message) {
  if (!paths_.insert(path).second) return;
  found_.push_back({origin, Describe(origin, path, message)});
}

void Problems::AddLine(const Origin& origin, const std::string& line) {
  found_.push_back({origin, line});
}

bool Problems::Covers(const std::string& path) const {
  const auto inside = paths_.lower_bound(path + ".");
  if (inside != paths_.end() && inside->rfind(path + ".", 0) == 0) return true;
  for (size_t end = path.size(); end != std::string::npos; end = path.rfind('.', end - 1)) {
    if (paths_.count(path.substr(0, end)) > 0) return true;
    if (end == 0) break;
  }
  return false;
}

absl::Status Problems::ToStatus() const {
  if (found_.empty()) return absl::OkStatus();
  std::vector<Problem> sorted = found_;
  std::stable_sort(sorted.begin(), sorted.end(), [](const Problem& a, const Problem& b) {
    return std::tie(a.origin.line, a.origin.column) < std::tie(b.origin.line, b.origin.column);
  });
  std::string text;
  for (size_t i = 0; i < sorted.size() && i < kShownMax; ++i) {
    absl::StrAppend(&text, i == 0 ? "" : "\n", sorted[i].text);
  }
  if (sorted.size() > kShownMax) {
    absl::StrAppend(&text, "\nand ", sorted.size() - kShownMax, " more");
  }
  return absl::InvalidArgumentError(text);
}

}  // namespace leeway
