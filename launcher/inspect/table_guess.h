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

// Guesses the form of a table from its beginning. Returns nullopt if no separator fits: the lines
// have different numbers of values, or one value each, or no column of numbers and few values.
std::optional<TableForm> GuessTable(std::string_view head);

// Returns the reason why the lines are not a table, beginning with FILE:LINE. Used for a file whose
// name promises a table.
std::string WhyNoTable(const std::string& name, std::string_view head);

// Whether the text is one that programs write for a missing value.
bool IsNoValue(absl::string_view text);
// Whether the text is a number, with a decimal point or comma.
bool IsDecimal(absl::string_view text);

}  // namespace leeway
