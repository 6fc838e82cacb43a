// Guesses how a table is written from its first lines.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "absl/strings/string_view.h"

namespace leeway {

struct TableForm {
  char separator = ',';
  // The first line names the columns.
  bool named = false;

  friend bool operator==(const TableForm&, const TableForm&) = default;
};

// Returns nullopt if with every separator the lines have different numbers of values, or one value
// each, or no column of numbers and few values.
std::optional<TableForm> GuessTable(std::string_view head);

// Says, with file:line:, why the lines are not a table. Used for a file whose name says that it is
// a table.
std::string WhyNoTable(const std::string& name, std::string_view head);

// Whether the text is one that programs write for a missing value.
bool IsNoValue(absl::string_view text);
// Whether the text is a number, with a decimal point or comma.
bool IsDecimal(absl::string_view text);

}  // namespace leeway
