#include "config/yaml_mistake.h"

#include <cstddef>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace leeway {
namespace {

bool IsBlank(char c) { return c == ' ' || c == '\t'; }
bool IsSpace(char c) { return IsBlank(c) || c == '\n' || c == '\r'; }

// Reads over tokens as YAML 1.2 delimits them (chapters 6 and 7), and keeps the brackets that are
// open. It need not understand the text, only not mistake a bracket in a text for one.
class Scan {
 public:
  Scan(std::string_view text, int line_max) : text_(text), line_max_(line_max) {}

  std::optional<YamlMistake> Run() {
    StartLine();
    while (!AtEnd() && !wrong_close_.has_value()) Token();
    if (wrong_close_.has_value() && wrong_close_->line <= line_max_) return wrong_close_;
    if (!open_.empty() && open_.back().line <= line_max_) return NeverClosed(open_.back());
    return tab_;
  }

 private:
  struct Bracket {
    char character;
    int line;
    int column;
  };

  static char ClosingOf(char open) { return open == '{' ? '}' : ']'; }

  static YamlMistake NeverClosed(const Bracket& bracket) {
    return {bracket.line, bracket.column,
            absl::StrCat("the '", std::string(1, bracket.character),
                         "' that opens here is never closed; add a '",
                         std::string(1, ClosingOf(bracket.character)), "'")};
  }

  bool AtEnd() const { return at_ >= text_.size(); }
  char Here(size_t further = 0) const {
    return at_ + further < text_.size() ? text_[at_ + further] : '\n';
  }

  void Next() {
    const char passed = text_[at_++];
    // A byte that continues a character has no column of its own.
    if ((static_cast<unsigned char>(Here()) & 0xC0) != 0x80 || AtEnd()) ++column_;
    if (passed != '\n') return;
    ++line_;
    column_ = 0;
    StartLine();
  }

  void StartLine() {
    line_start_ = at_;
    size_t end = at_;
    while (end < text_.size() && IsBlank(text_[end])) ++end;
    indentation_ = end - at_;
  }

  // Only spaces indent. A tab before nothing or a comment, or between brackets, is no harm.
  void NoteTab() {
    const size_t first = line_start_ + indentation_;
    if (at_ >= first || first >= text_.size() || !open_.empty() || line_ > line_max_) return;
    const char c = text_[first];
    if (c == '\n' || c == '\r' || c == '#') return;
    if (tab_.has_value() && tab_->line == line_) return;
    tab_ = {line_, column_, "a tab in the indentation; YAML takes spaces only"};
  }

  void Token() {
    const char c = Here();
    if (c == '\t') NoteTab();
    const bool indicates = (c == '-' || c == '?' || c == ':') && IsSpace(Here(1));
    if (indicates || IsSpace(c) || c == ',') {
      Next();
    } else if (c == '#') {
      SkipLine();
    } else if (c == '"' || c == '\'') {
      SkipQuoted(c);
    } else if (c == '{' || c == '[') {
      open_.push_back({c, line_, column_});
      Next();
    } else if (c == '}' || c == ']') {
      Close(c);
    } else if ((c == '|' || c == '>') && open_.empty()) {
      SkipBlock();
    } else {
      SkipPlain();
    }
  }

  void Close(char c) {
    if (!open_.empty() && ClosingOf(open_.back().character) == c) {
      open_.pop_back();
      Next();
      return;
    }
    wrong_close_ = {line_, column_, ""};
    if (open_.empty()) {
      wrong_close_->message = absl::StrCat("this '", std::string(1, c), "' closes nothing");
    } else {
      const Bracket& open = open_.back();
      wrong_close_->message = absl::StrCat("this '", std::string(1, c), "' does not close the '",
                                           std::string(1, open.character), "' of line ",
                                           open.line + 1, ", column ", open.column + 1);
    }
  }

  void SkipLine() {
    while (!AtEnd() && Here() != '\n') Next();
  }

  // Up to the closing quote, or the end of the text.
  void SkipQuoted(char quote) {
    for (Next(); !AtEnd(); Next()) {
      if (quote == '"' && Here() == '\\') {
        Next();
        if (AtEnd()) return;
      } else if (Here() == quote) {
        Next();
        if (quote == '"' || Here() != quote) return;
      }
    }
  }

  // A text in lines that are indented further than the line that announces it.
  void SkipBlock() {
    const size_t around = indentation_;
    do {
      SkipLine();
      if (!AtEnd()) Next();
    } while (!AtEnd() && (indentation_ > around || Here(indentation_) == '\n'));
  }

  // A plain text: up to ": ", " #" or a line's end, and in brackets to the next of them.
  void SkipPlain() {
    for (; !AtEnd() && Here() != '\n'; Next()) {
      if (Here() == ':' && IsSpace(Here(1))) return;
      if (IsBlank(Here()) && Here(1) == '#') return;
      const bool ends_item = std::string_view(",[]{}").find(Here()) != std::string_view::npos;
      if (ends_item && !open_.empty()) return;
    }
  }

  const std::string_view text_;
  const int line_max_;
  size_t at_ = 0;
  int line_ = 0;
  int column_ = 0;
  // Of the line, in bytes.
  size_t line_start_ = 0;
  size_t indentation_ = 0;
  std::vector<Bracket> open_;
  std::optional<YamlMistake> wrong_close_;
  std::optional<YamlMistake> tab_;
};

}  // namespace

std::optional<YamlMistake> FindYamlMistake(std::string_view text, int line) {
  return Scan(text, line).Run();
}

std::string_view InPlainWords(std::string_view message) {
  constexpr std::pair<std::string_view, std::string_view> kPlain[] = {
      {"illegal map value",
       "'key: value' where no key may be; indent the line like the keys beside it, or put a text "
       "that holds ': ' in quotes"},
      {"end of map not found",
       "this line is no key of the map above it; write 'key: value', indented like the other keys"},
      {"end of sequence not found",
       "this line is no item of the list above it; write '- item', indented like the other items"},
      {"illegal block entry",
       "'- item' where no list may be; begin the list on the line after its key"},
      {"unknown token", "a text cannot begin with this character; put the text in quotes"},
  };
  for (const auto& [known, plain] : kPlain) {
    if (message == known) return plain;
  }
  return message;
}

}  // namespace leeway
