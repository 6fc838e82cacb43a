// How a table is written: a guess by its first lines.
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

// Nothing if the lines have different numbers of values with every separator, one value each, or
// no column of numbers and few values.
std::optional<TableForm> GuessTable(std::string_view head);

// What keeps the lines from being a table, with file:line: for a file whose name says that it is
// one.
std::string WhyNoTable(const std::string& name, std::string_view head);

// Whether the text is how programs write that there is no value.
bool IsNoValue(absl::string_view text);
// A number, with a point or a comma.
bool IsDecimal(absl::string_view text);

}  // namespace leeway
