#include "launcher/kubernetes/template.h"

#include <cstddef>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/status.h"

namespace leeway {
namespace {

class Filling {
 public:
  explicit Filling(const TemplateValues& values) : values_(values) {}

  absl::Status Add(absl::string_view line) {
    absl::string_view words = absl::StripAsciiWhitespace(line);
    if (absl::ConsumePrefix(&words, "@if ")) return Begin(words);
    if (words == "@end") return End();
    if (!shown()) return absl::OkStatus();
    if (absl::ConsumePrefix(&words, "@")) return AddLines(words, line.find('@'));
    return AddLine(line);
  }
  absl::StatusOr<std::string> Done() && {
    if (!conditions_.empty()) return absl::InternalError("an @if has no @end");
    return std::move(text_);
  }

 private:
  bool shown() const { return conditions_.empty() || conditions_.back(); }

  absl::StatusOr<absl::string_view> ValueOf(absl::string_view name) const {
    const auto found = values_.find(name);
    if (found == values_.end()) return absl::InternalError(absl::StrCat("no value ", name));
    return found->second;
  }
  absl::Status Begin(absl::string_view words) {
    bool holds = shown();
    for (absl::string_view name : absl::StrSplit(words, ' ')) {
      const bool wanted = !absl::ConsumePrefix(&name, "!");
      ASSIGN_OR_RETURN(const absl::string_view value, ValueOf(name));
      holds = holds && value.empty() != wanted;
    }
    conditions_.push_back(holds);
    return absl::OkStatus();
  }
  absl::Status End() {
    if (conditions_.empty()) return absl::InternalError("an @end has no @if");
    conditions_.pop_back();
    return absl::OkStatus();
  }
  absl::Status AddLines(absl::string_view name, size_t indent) {
    ASSIGN_OR_RETURN(absl::string_view value, ValueOf(name));
    if (value.empty()) return absl::OkStatus();
    absl::ConsumeSuffix(&value, "\n");
    for (const absl::string_view line : absl::StrSplit(value, '\n')) {
      if (!line.empty()) absl::StrAppend(&text_, std::string(indent, ' '), line);
      absl::StrAppend(&text_, "\n");
    }
    return absl::OkStatus();
  }
  absl::Status AddLine(absl::string_view line) {
    for (size_t at = line.find("${"); at != line.npos; at = line.find("${")) {
      const size_t end = line.find('}', at);
      if (end == line.npos) return absl::InternalError("a ${ has no }");
      ASSIGN_OR_RETURN(const absl::string_view value, ValueOf(line.substr(at + 2, end - at - 2)));
      absl::StrAppend(&text_, line.substr(0, at), value);
      line.remove_prefix(end + 1);
    }
    absl::StrAppend(&text_, line, "\n");
    return absl::OkStatus();
  }

  const TemplateValues& values_;
  // For each @if around the line: whether its condition and all outer conditions hold.
  std::vector<bool> conditions_;
  std::string text_;
};

}  // namespace

absl::StatusOr<std::string> FillTemplate(absl::string_view text, const TemplateValues& values) {
  Filling filling(values);
  size_t number = 0;
  absl::ConsumeSuffix(&text, "\n");
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    RETURN_IF_ERROR(Annotate(filling.Add(line), absl::StrCat("line ", ++number)));
  }
  return std::move(filling).Done();
}

}  // namespace leeway
