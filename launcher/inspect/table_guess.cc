#include "launcher/inspect/table_guess.h"

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "worker/data/csv_fields.h"
#include "worker/data/text.h"

namespace leeway {
namespace {

using TableRow = std::vector<std::string>;

constexpr absl::string_view kUtf8Mark = "\xef\xbb\xbf";
constexpr absl::string_view kNoValues[] = {"",    "?",    "NA",   "N/A",  "nan",
                                           "NaN", "NULL", "null", "None", "#N/A"};
constexpr char kSeparators[] = {';', '\t', ',', '|', ' '};
// The minimum size of a table without a column of numbers, so that prose is not considered a table.
constexpr size_t kTextColumns = 3;
constexpr size_t kTextRows = 4;

// Returns the lines, except blank lines, and except the last line if it may be incomplete.
std::vector<absl::string_view> LinesOf(absl::string_view head) {
  if (absl::StartsWith(head, kUtf8Mark)) head.remove_prefix(kUtf8Mark.size());
  std::vector<absl::string_view> lines;
  for (absl::string_view line : absl::StrSplit(head, '\n')) {
    lines.push_back(absl::StripSuffix(line, "\r"));
  }
  if (lines.size() > 2) lines.pop_back();
  lines.erase(std::remove_if(
                  lines.begin(), lines.end(),
                  [](absl::string_view line) { return absl::StripAsciiWhitespace(line).empty(); }),
              lines.end());
  return lines;
}

// Returns the rows if all have the same number of values, at least two; otherwise nothing.
std::vector<TableRow> RowsOf(const std::vector<absl::string_view>& lines, char separator) {
  std::vector<TableRow> rows;
  for (const absl::string_view line : lines) {
    auto row = SplitCsvLine(line, separator);
    if (!row.ok() || row->size() < 2) return {};
    if (!rows.empty() && row->size() != rows[0].size()) return {};
    rows.push_back(*std::move(row));
  }
  return rows;
}

// Returns true if the row is "0,1,2" or ",0,1,2", which pandas writes for columns without names.
bool CountsColumns(const TableRow& row) {
  const size_t first = row[0].empty() ? 1 : 0;
  if (row.size() - first < 2) return false;
  for (size_t i = first; i < row.size(); ++i) {
    if (row[i] != absl::StrCat(i - first)) return false;
  }
  return true;
}

bool HasNumbers(const std::vector<TableRow>& rows, size_t column, size_t from) {
  size_t numbers = 0;
  for (size_t i = from; i < rows.size(); ++i) {
    if (IsDecimal(rows[i][column])) {
      ++numbers;
    } else if (!IsNoValue(rows[i][column])) {
      return false;
    }
  }
  return numbers > 0;
}

size_t NumberColumns(const std::vector<TableRow>& rows, size_t from) {
  size_t columns = 0;
  for (size_t i = 0; i < rows[0].size(); ++i) columns += HasNumbers(rows, i, from) ? 1 : 0;
  return columns;
}

// Returns true if every value of the first row is unique within its column.
bool FirstIsAlone(const std::vector<TableRow>& rows) {
  for (size_t column = 0; column < rows[0].size(); ++column) {
    for (size_t i = 1; i < rows.size(); ++i) {
      if (rows[i][column] == rows[0][column]) return false;
    }
  }
  return true;
}

bool HasNames(const std::vector<TableRow>& rows) {
  if (rows.size() < 2) return false;
  if (CountsColumns(rows[0])) return true;
  if (std::any_of(rows[0].begin(), rows[0].end(), IsDecimal)) return false;
  // Only the first column may lack a name, because it may be an index without a name.
  if (std::any_of(rows[0].begin() + 1, rows[0].end(), IsNoValue)) return false;
  return NumberColumns(rows, 1) > 0 || FirstIsAlone(rows);
}

bool IsTable(const std::vector<TableRow>& rows, char separator, bool named) {
  const size_t from = named ? 1 : 0;
  const size_t numbers = NumberColumns(rows, from);
  // Words with spaces between them are prose.
  if (separator == ' ') return numbers == rows[0].size();
  return numbers > 0 || (rows[0].size() >= kTextColumns && rows.size() >= kTextRows);
}

}  // namespace

bool IsNoValue(absl::string_view text) {
  return std::find(std::begin(kNoValues), std::end(kNoValues), text) != std::end(kNoValues);
}

bool IsDecimal(absl::string_view text) {
  return ParseNumber(text).ok() || ParseNumber(absl::StrReplaceAll(text, {{",", "."}})).ok();
}

std::optional<TableForm> GuessTable(std::string_view head) {
  const std::vector<absl::string_view> lines = LinesOf({head.data(), head.size()});
  for (const char separator : kSeparators) {
    const std::vector<TableRow> rows = RowsOf(lines, separator);
    if (rows.empty()) continue;
    const bool named = HasNames(rows);
    if (IsTable(rows, separator, named)) return TableForm{separator, named};
  }
  return std::nullopt;
}

std::string WhyNoTable(const std::string& name, std::string_view head) {
  const std::vector<absl::string_view> lines = LinesOf({head.data(), head.size()});
  if (lines.empty()) return absl::StrCat(name, ": the file has no lines");
  const char separator =
      *std::max_element(std::begin(kSeparators), std::end(kSeparators) - 1, [&](char a, char b) {
        return std::count(lines[0].begin(), lines[0].end(), a) <
               std::count(lines[0].begin(), lines[0].end(), b);
      });
  const auto first = SplitCsvLine(lines[0], separator);
  for (size_t i = 0; i < lines.size(); ++i) {
    const auto row = SplitCsvLine(lines[i], separator);
    const std::string place = absl::StrCat(name, ":", i + 1, ": ");
    if (!row.ok()) return absl::StrCat(place, row.status().message());
    if (row->size() == first->size()) continue;
    return absl::StrCat(place, "the line has ", row->size(), " values, but the first line has ",
                        first->size(), ", with the separator ", Quote({&separator, 1}));
  }
  if (first->size() > 1) {
    return absl::StrCat(name, ": ", first->size(),
                        " columns of text and no column of numbers: a feature is a number, or ",
                        "a text with few different values");
  }
  return absl::StrCat(name, ":1: the line has one value, and no ';', ',', '|' or tab after it");
}

}  // namespace leeway
