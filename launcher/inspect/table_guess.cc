#include "launcher/inspect/table_guess.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "worker/data/text.h"

namespace leeway {
namespace {

using TableRow = std::vector<absl::string_view>;

constexpr size_t kTableClassesMax = 100;
constexpr const char* kMissing[] = {"?", "NA", "nan", "NaN", ""};

// Without blank lines, and without the last one if it may be cut off.
std::vector<absl::string_view> LinesOf(absl::string_view head) {
  std::vector<absl::string_view> lines;
  for (absl::string_view line : absl::StrSplit(head, '\n')) {
    lines.push_back(absl::StripTrailingAsciiWhitespace(line));
  }
  if (lines.size() > 2) lines.pop_back();
  lines.erase(std::remove(lines.begin(), lines.end(), ""), lines.end());
  return lines;
}

bool IsMissing(absl::string_view field) {
  const absl::string_view text = absl::StripAsciiWhitespace(field);
  return std::find(std::begin(kMissing), std::end(kMissing), text) != std::end(kMissing);
}

bool IsNumber(absl::string_view field) { return ParseNumber(field).ok(); }

// All numbers or missing, as many in each row, at least two; the missing ones alike.
bool IsTable(const std::vector<TableRow>& rows, std::string& missing) {
  for (const TableRow& row : rows) {
    if (row.size() < 2 || row.size() != rows[0].size()) return false;
    for (const absl::string_view field : row) {
      if (IsNumber(field)) continue;
      if (!IsMissing(field)) return false;
      missing = std::string(absl::StripAsciiWhitespace(field));
    }
  }
  return !rows.empty();
}

bool HasClasses(const std::vector<TableRow>& rows, size_t column) {
  std::set<double> values;
  for (const TableRow& row : rows) {
    const auto value = ParseNumber(row[column]);
    if (!value.ok() || *value != std::floor(*value)) return false;
    values.insert(*value);
  }
  return values.size() <= std::min(kTableClassesMax, std::max<size_t>(rows.size() / 2, 2));
}

}  // namespace

std::optional<v1::Csv> GuessTable(std::string_view head) {
  const std::vector<absl::string_view> lines = LinesOf({head.data(), head.size()});
  for (const char separator : {',', ';', '\t', ' '}) {
    std::vector<TableRow> rows;
    for (const absl::string_view line : lines) rows.push_back(absl::StrSplit(line, separator));
    if (rows.empty()) return std::nullopt;
    const bool named = std::none_of(rows[0].begin(), rows[0].end(),
                                    [](auto field) { return IsNumber(field) || IsMissing(field); });
    if (named) rows.erase(rows.begin());
    v1::Csv csv;
    std::string missing = "none";
    if (!IsTable(rows, missing)) continue;
    csv.set_separator(std::string(1, separator));
    if (named) csv.set_skip_lines(1);
    if (missing != "none") csv.set_missing(missing);
    const size_t last = rows[0].size() - 1;
    if (!HasClasses(rows, last) && HasClasses(rows, 0)) csv.set_label_column(0);
    return csv;
  }
  return std::nullopt;
}

}  // namespace leeway
