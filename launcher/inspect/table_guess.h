// Guesses how a table is written from its first lines.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "absl/strings/string_view.h"

namespace leeway {

struct TableForm {
  char separator = ',';
  // Whether the first line names the columns.
  bool named = false;

  friend bool operator==(const TableForm&, const TableForm&) = default;
};

// Guesses the form of a table from its beginning. Returns nullopt if no separator fits. A separator
// does not fit if lines have different numbers of values, one value each, or few values and no
// column of numbers.
std::optional<TableForm> GuessTable(std::string_view head);

// Returns why the lines are not a table, beginning with FILE:LINE. Call this function for a file
// with a table's suffix.
std::string WhyNoTable(const std::string& name, std::string_view head);

// Returns true if programs write this text for a missing value.
bool IsNoValue(absl::string_view text);
// Returns true if the text is a number, with a decimal point or comma.
bool IsDecimal(absl::string_view text);

}  // namespace leeway
