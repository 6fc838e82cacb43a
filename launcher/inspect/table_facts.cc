#include "launcher/inspect/table_facts.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "worker/data/csv_fields.h"
#include "worker/data/data_file.h"
#include "worker/data/text.h"

namespace leeway {
namespace {

void AddTo(ColumnFacts& column, const std::string& value) {
  if (IsNoValue(value)) {
    ++column.missing;
    column.counts_up = false;
    return;
  }
  if (column.few()) column.values.insert(value);
  const absl::StatusOr<double> number = ParseNumber(value);
  if (!number.ok()) {
    ++column.texts;
    column.text = value;
    column.counts_up = false;
    return;
  }
  column.counts_up = column.counts_up && (column.numbers == 0 ? *number == 0 || *number == 1
                                                              : *number == column.largest + 1);
  column.least = column.numbers == 0 ? *number : std::min(column.least, *number);
  column.largest = column.numbers == 0 ? *number : std::max(column.largest, *number);
  column.whole = column.whole && *number == std::floor(*number);
  ++column.numbers;
}

absl::Status AddNames(const std::vector<std::string>& names, TableFacts& facts) {
  if (facts.columns.empty()) {
    for (const std::string& name : names) facts.columns.push_back({.name = name, .text = ""});
    return absl::OkStatus();
  }
  for (size_t i = 0; i < std::min(names.size(), facts.columns.size()); ++i) {
    if (names[i] == facts.columns[i].name) continue;
    return absl::InvalidArgumentError(absl::StrCat("column ", i, " is called ", Quote(names[i]),
                                                   ", but in the first file it is called ",
                                                   Quote(facts.columns[i].name)));
  }
  return absl::OkStatus();
}

absl::Status AddRow(const std::vector<std::string>& row, TableFacts& facts) {
  if (facts.columns.empty()) facts.columns.resize(row.size());
  if (row.size() != facts.columns.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the line has ", row.size(), " columns, but the first line has ", facts.columns.size()));
  }
  for (size_t i = 0; i < row.size(); ++i) {
    AddTo(facts.columns[i], row[i]);
    if (IsNoValue(row[i])) facts.missing.insert(row[i]);
  }
  ++facts.lines;
  return absl::OkStatus();
}

absl::Status AddFile(const std::string& data_dir, const std::string& name, TableFacts& facts) {
  ASSIGN_OR_RETURN(DataFile file, OpenDataFile(data_dir, name));
  Lines lines(*file.bytes, file.path);
  bool names_follow = facts.form.named;
  absl::string_view line;
  while (true) {
    ASSIGN_OR_RETURN(const bool more, lines.Next(line));
    if (!more) return absl::OkStatus();
    if (absl::StripAsciiWhitespace(line).empty()) continue;
    const std::string place = absl::StrCat(name, ":", lines.number());
    const auto row = SplitCsvLine(line, facts.form.separator);
    RETURN_IF_ERROR(Annotate(row.status(), place));
    RETURN_IF_ERROR(Annotate(names_follow ? AddNames(*row, facts) : AddRow(*row, facts), place));
    names_follow = false;
  }
}

}  // namespace

bool ColumnFacts::like_classes() const {
  if (!few() || constant()) return false;
  if (texts > 0) return true;
  if (!whole) return false;
  const bool signs = least == -1 && largest == 1 && values.size() == 2;
  return signs ||
         ((least == 0 || least == 1) && largest - least + 1 == static_cast<double>(values.size()));
}

absl::StatusOr<TableFacts> ReadTableFacts(const std::string& data_dir,
                                          const std::vector<std::string>& names,
                                          const TableForm& form) {
  TableFacts facts{form, {}, 0, {}};
  for (const std::string& name : names) RETURN_IF_ERROR(AddFile(data_dir, name, facts));
  return facts;
}

}  // namespace leeway
