// The values of one line of a table.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace leeway {

// Walks the values of a line. A value may be in double quotes. Within these quotes the separator is
// text, and "" is a quote (RFC 4180). A quoted value must end within its line. Not thread-safe.
class CsvFields {
 public:
  // `line` must outlive this object.
  CsvFields(absl::string_view line, char separator)
      : rest_(line),
        separator_(separator),
        has_quotes_(separator != '"' && line.find('"') != absl::string_view::npos) {}
  // Reads the next value. Returns false after the last value. `value` is valid until the next call.
  // It has no quotes, and no spaces around it unless they are in quotes. Returns INVALID_ARGUMENT,
  // without a place, if quotes do not end, or end before the value ends.
  absl::StatusOr<bool> Next(absl::string_view& value);

 private:
  // Reads a value that begins with a quote.
  absl::Status TakeQuoted(absl::string_view& value);
  // Removes everything up to `end`, and the separator at `end`, from `rest_`.
  void Pass(size_t end);
  // Returns the position of the closing quote in `rest_`, which begins with a quote.
  absl::StatusOr<size_t> ClosingQuote() const;

  absl::string_view rest_;
  const char separator_;
  // True if the line has quotes. Most lines have no quotes, so their values are not searched for
  // quotes.
  const bool has_quotes_;
  bool at_end_ = false;
  // The value that was read last, if it has quotes within it.
  std::string unquoted_;
};

// Returns all values of a line, or the errors of CsvFields.
absl::StatusOr<std::vector<std::string>> SplitCsvLine(absl::string_view line, char separator);

}  // namespace leeway
