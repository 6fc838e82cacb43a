#include "config/yaml_mistake.h"

#include <cstddef>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace leeway {
namespace {

constexpr std::string_view kWrongClose = "illegal flow end";

YamlMistake WrongClose(const YamlMistake& noticed, const std::optional<OpenBracket>& open) {
  if (!open) return {noticed.line, noticed.column, "this bracket closes nothing; remove it"};
  const char closing = open->character == '{' ? '}' : ']';
  return {noticed.line, noticed.column,
          absl::StrCat("this bracket does not close the '", std::string(1, open->character),
                       "' of line ", open->line + 1, ", column ", open->column + 1, "; write '",
                       std::string(1, closing), "'")};
}

// Describes a bracket that is not closed where the parser expected it to be.
YamlMistake NotClosed(const YamlMistake& noticed, const OpenBracket& open) {
  const char* closing = open.character == '{' ? "}" : "]";
  const std::string opening(1, open.character);
  // If the text ends too early, yaml-cpp may report the beginning of the text as the place.
  if (noticed.line != open.line || noticed.column <= open.column) {
    return {
        open.line, open.column,
        absl::StrCat("the '", opening, "' that opens here is never closed; add a '", closing, "'")};
  }
  return {
      noticed.line, noticed.column,
      absl::StrCat("this does not continue the '", opening, "' of column ", open.column + 1,
                   "; add a ',' or '", closing, "', or put a text that contains ': ' in quotes")};
}

// Returns the column of a tab in the indentation of `line`.
std::optional<int> TabOf(std::string_view text, int line) {
  size_t begin = 0;
  for (; line > 0 && begin < text.size(); --line) begin = text.find('\n', begin) + 1;
  const size_t end = text.find_first_not_of(" \t", begin);
  const size_t tab = text.substr(0, end).find('\t', begin);
  if (tab == std::string_view::npos) return std::nullopt;
  return static_cast<int>(tab - begin);
}

std::string_view InPlainWords(std::string_view message) {
  constexpr std::pair<std::string_view, std::string_view> kPlain[] = {
      {"illegal map value",
       "'key: value' is not allowed here; indent the line like the keys beside it, or put a text "
       "that contains ': ' in quotes"},
      {"end of map not found",
       "this line is not a key of the map above it; write 'key: value', indented like the other "
       "keys"},
      {"end of sequence not found",
       "this line is not an item of the list above it; write '- item', indented like the other "
       "items"},
      {"illegal block entry",
       "'- item' is not allowed here; begin the list on the line after its key"},
      {"unknown token", "a text cannot begin with this character; put the text in quotes"},
  };
  for (const auto& [known, plain] : kPlain) {
    if (message == known) return plain;
  }
  return message;
}

}  // namespace

YamlMistake CauseOf(YamlMistake noticed, std::string_view text,
                    const std::optional<OpenBracket>& open) {
  if (noticed.message == kWrongClose) return WrongClose(noticed, open);
  if (open && (absl::EndsWith(noticed.message, "flow not found") ||
               noticed.message == "illegal block entry")) {
    return NotClosed(noticed, *open);
  }
  if (const std::optional<int> tab = TabOf(text, noticed.line)) {
    return {noticed.line, *tab, "a tab in the indentation; YAML allows spaces only"};
  }
  noticed.message = std::string(InPlainWords(noticed.message));
  return noticed;
}

}  // namespace leeway
