// The values of one line of a table.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace leeway {

// Walks them. A value may be in double quotes, in which the separator is text and "" is a quote
// (RFC 4180), but within its line. Not thread-safe.
class CsvFields {
 public:
  // `line` outlives it.
  CsvFields(absl::string_view line, char separator)
      : rest_(line),
        separator_(separator),
        has_quotes_(separator != '"' && line.find('"') != absl::string_view::npos) {}
  // False behind the last one. `value` lasts until the next call, without quotes, and without the
  // spaces around it unless they are in quotes. INVALID_ARGUMENT, without a place, for quotes that
  // do not end, or end before the value does.
  absl::StatusOr<bool> Next(absl::string_view& value);

 private:
  // Of what begins with a quote.
  absl::Status TakeQuoted(absl::string_view& value);
  // Up to `end` of what is left, and the separator there.
  void Pass(size_t end);
  // Of what begins with a quote: where its closing one is.
  absl::StatusOr<size_t> ClosingQuote() const;

  absl::string_view rest_;
  const char separator_;
  // Most lines have none.
  const bool has_quotes_;
  bool at_end_ = false;
  // Of a value with quotes in it.
  std::string unquoted_;
};

// All of them. Errors are those of CsvFields.
absl::StatusOr<std::vector<std::string>> SplitCsvLine(absl::string_view line, char separator);

}  // namespace leeway
