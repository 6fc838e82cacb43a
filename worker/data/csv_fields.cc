#include "worker/data/csv_fields.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_replace.h"
#include "common/status.h"
#include "worker/data/text.h"

namespace leeway {

absl::StatusOr<size_t> CsvFields::ClosingQuote() const {
  for (size_t at = 1; at < rest_.size(); ++at) {
    if (rest_[at] != '"') continue;
    if (at + 1 == rest_.size() || rest_[at + 1] != '"') return at;
    ++at;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("the quotes before ", Quote(rest_.substr(1)),
                   " do not end in this line; remove line breaks from the text"));
}

void CsvFields::Pass(size_t end) {
  at_end_ = end == rest_.size();
  rest_.remove_prefix(at_end_ ? end : end + 1);
}

absl::Status CsvFields::TakeQuoted(absl::string_view& value) {
  ASSIGN_OR_RETURN(const size_t closing, ClosingQuote());
  value = rest_.substr(1, closing - 1);
  const size_t end = std::min(rest_.find(separator_, closing + 1), rest_.size());
  const absl::string_view between = rest_.substr(closing + 1, end - closing - 1);
  if (!absl::StripAsciiWhitespace(between).empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        Quote(between), " follows a closing quote; write a quote within a quoted value as \"\""));
  }
  if (value.find('"') != absl::string_view::npos) {
    unquoted_ = absl::StrReplaceAll(value, {{"\"\"", "\""}});
    value = unquoted_;
  }
  Pass(end);
  return absl::OkStatus();
}

absl::StatusOr<bool> CsvFields::Next(absl::string_view& value) {
  if (at_end_) return false;
  const size_t first = has_quotes_ ? rest_.find_first_not_of(' ') : absl::string_view::npos;
  if (first != absl::string_view::npos && rest_[first] == '"') {
    rest_.remove_prefix(first);
    RETURN_IF_ERROR(TakeQuoted(value));
    return true;
  }
  const size_t end = std::min(rest_.find(separator_), rest_.size());
  value = absl::StripAsciiWhitespace(rest_.substr(0, end));
  Pass(end);
  return true;
}

absl::StatusOr<std::vector<std::string>> SplitCsvLine(absl::string_view line, char separator) {
  std::vector<std::string> values;
  CsvFields fields(line, separator);
  absl::string_view value;
  while (true) {
    ASSIGN_OR_RETURN(const bool more, fields.Next(value));
    if (!more) return values;
    values.emplace_back(value);
  }
}

}  // namespace leeway
