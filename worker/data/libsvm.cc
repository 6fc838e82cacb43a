#include "worker/data/libsvm.h"

#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "common/status.h"
#include "worker/data/labels.h"
#include "worker/data/text.h"

namespace leeway {
namespace {

// Removes the next word from `rest` and returns it. Returns an empty string at the end.
absl::string_view NextWord(absl::string_view& rest) {
  rest = absl::StripLeadingAsciiWhitespace(rest);
  size_t end = 0;
  while (end < rest.size() && !absl::ascii_isspace(rest[end])) ++end;
  const absl::string_view word = rest.substr(0, end);
  rest.remove_prefix(end);
  return word;
}

absl::StatusOr<float> ParseLabel(absl::string_view word, LabelReader& labels) {
  absl::StatusOr<double> number = ParseNumber(word);
  if (!number.ok()) return Annotate(number.status(), "label");
  return labels.Read(*number);
}

// Sets one `index:value` of `row`. `last` is the previous index of the line, and is set to this
// index.
absl::Status SetFeature(absl::string_view word, std::span<float> row, uint64_t& last) {
  const size_t colon = word.find(':');
  uint64_t index;
  if (colon == absl::string_view::npos || !absl::SimpleAtoi(word.substr(0, colon), &index)) {
    return absl::InvalidArgumentError(absl::StrCat(Quote(word), " is not of the form index:value"));
  }
  const auto bad = [&](absl::string_view what) {
    return absl::InvalidArgumentError(absl::StrCat("feature ", index, ": ", what));
  };
  if (index == 0) return bad("indices count from 1");
  if (index > row.size()) {
    return bad(absl::StrCat("exceeds libsvm.features, which is ", row.size()));
  }
  if (index <= last) return bad(absl::StrCat("follows feature ", last, "; indices must ascend"));
  absl::StatusOr<float> value = ParseFloat(word.substr(colon + 1));
  if (!value.ok()) return bad(value.status().message());
  row[index - 1] = *value;
  last = index;
  return absl::OkStatus();
}

absl::Status ParseLine(absl::string_view line, LabelReader& labels, std::span<float> row,
                       float& label) {
  ASSIGN_OR_RETURN(label, ParseLabel(NextWord(line), labels));
  uint64_t last = 0;
  while (true) {
    const absl::string_view word = NextWord(line);
    if (word.empty()) return absl::OkStatus();
    RETURN_IF_ERROR(SetFeature(word, row, last));
  }
}

// Passes each line that has an example, and its place, to `take`. Rewinds `file` afterwards.
absl::Status ForEachLine(
    DataFile& file, absl::FunctionRef<absl::Status(absl::string_view, const Lines& place)> take) {
  Lines lines(*file.bytes, file.path);
  absl::string_view line;
  while (true) {
    ASSIGN_OR_RETURN(const bool more, lines.Next(line));
    if (!more) return file.bytes->Rewind();
    line = line.substr(0, line.find('#'));
    if (!absl::StripAsciiWhitespace(line).empty()) RETURN_IF_ERROR(take(line, lines));
  }
}

}  // namespace

absl::StatusOr<Examples> ParseLibsvm(DataFile file, const v1::Libsvm& options,
                                     const LabelRule& rule) {
  const size_t features = options.features();
  if (features == 0) return absl::InvalidArgumentError("libsvm.features: is 0");
  const auto place = [&](const Lines& lines) {
    return absl::StrCat(file.path, ":", lines.number());
  };
  // The first pass counts the lines. Rows are much larger than lines, so memory is allocated only
  // if all rows fit.
  size_t count = 0;
  RETURN_IF_ERROR(ForEachLine(file, [&](absl::string_view, const Lines& lines) {
    const absl::Status fits = CheckSize(++count, features, sizeof(float), file.path);
    return fits.ok() ? fits : CheckSize(count, features, sizeof(float), place(lines));
  }));
  if (count == 0) return absl::InvalidArgumentError(absl::StrCat(file.path, ": has no examples"));
  std::vector<float> values;
  values.reserve(count * features);
  Examples examples{{1, 1, options.features()}, {}, {}};
  examples.labels.reserve(count);
  LabelReader labels(rule);
  RETURN_IF_ERROR(ForEachLine(file, [&](absl::string_view line, const Lines& lines) {
    values.resize(values.size() + features);
    const std::span row(values.data() + values.size() - features, features);
    const absl::Status parsed = ParseLine(line, labels, row, examples.labels.emplace_back());
    return parsed.ok() ? parsed : Annotate(parsed, place(lines));
  }));
  examples.values = std::move(values);
  examples.negative = labels.negative();
  return examples;
}

}  // namespace leeway
