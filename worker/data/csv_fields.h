// The values of one line of a table.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace leeway {

// Walks the values of a line. A value may be in double quotes, in which the separator is text and
// "" is a quote (RFC 4180). It must end within its line. Not thread-safe.
class CsvFields {
 public:
  // `line` must outlive this object.
  CsvFields(absl::string_view line, char separator)
      : rest_(line),
        separator_(separator),
        has_quotes_(separator != '"' && line.find('"') != absl::string_view::npos) {}
  // False after the last value. `value` is valid until the next call. It has no quotes, and no
  // spaces around it unless they are in quotes. INVALID_ARGUMENT, without a place, for quotes that
  // do not end, or that end before the value does.
  absl::StatusOr<bool> Next(absl::string_view& value);

 private:
  // Takes a value that begins with a quote.
  absl::Status TakeQuoted(absl::string_view& value);
  // Removes everything up to `end` from `rest_`, and the separator there.
  void Pass(size_t end);
  // Returns where the closing quote of `rest_` is, which begins with a quote.
  absl::StatusOr<size_t> ClosingQuote() const;

  absl::string_view rest_;
  const char separator_;
  // Most lines have no quotes.
  const bool has_quotes_;
  bool at_end_ = false;
  // The text of a value that has quotes in it.
  std::string unquoted_;
};

// All values of a line. Errors are those of CsvFields.
absl::StatusOr<std::vector<std::string>> SplitCsvLine(absl::string_view line, char separator);

}  // namespace leeway
