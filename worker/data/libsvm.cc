#include "worker/data/libsvm.h"

#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "common/status.h"
#include "worker/data/labels.h"
#include "worker/data/text.h"

namespace leeway {
namespace {

// Cuts the next word off `rest`; empty at the end.
absl::string_view NextWord(absl::string_view& rest) {
  rest = absl::StripLeadingAsciiWhitespace(rest);
  size_t end = 0;
  while (end < rest.size() && !absl::ascii_isspace(rest[end])) ++end;
  const absl::string_view word = rest.substr(0, end);
  rest.remove_prefix(end);
  return word;
}

absl::StatusOr<float> ParseLabel(absl::string_view word, const LabelRule& rule) {
  absl::StatusOr<double> number = ParseNumber(word);
  if (!number.ok()) return Annotate(number.status(), "label");
  return CheckLabel(*number, rule);
}

// Sets one `index:value` of `row`; `last` is the index before it.
absl::Status SetFeature(absl::string_view word, std::span<float> row, uint64_t& last) {
  const size_t colon = word.find(':');
  uint64_t index;
  if (colon == absl::string_view::npos || !absl::SimpleAtoi(word.substr(0, colon), &index)) {
    return absl::InvalidArgumentError(absl::StrCat(Quote(word), " where index:value belongs"));
  }
  const auto bad = [&](absl::string_view what) {
    return absl::InvalidArgumentError(absl::StrCat("feature ", index, ": ", what));
  };
  if (index == 0) return bad("indices count from 1");
  if (index > row.size()) {
    return bad(absl::StrCat("beyond the ", row.size(), " of libsvm.features"));
  }
  if (index <= last) return bad(absl::StrCat("follows ", last, "; indices ascend"));
  absl::StatusOr<float> value = ParseFloat(word.substr(colon + 1));
  if (!value.ok()) return bad(value.status().message());
  row[index - 1] = *value;
  last = index;
  return absl::OkStatus();
}

absl::Status ParseLine(absl::string_view line, const LabelRule& rule, std::span<float> row,
                       float& label) {
  ASSIGN_OR_RETURN(label, ParseLabel(NextWord(line), rule));
  uint64_t last = 0;
  while (true) {
    const absl::string_view word = NextWord(line);
    if (word.empty()) return absl::OkStatus();
    RETURN_IF_ERROR(SetFeature(word, row, last));
  }
}

}  // namespace

absl::StatusOr<Examples> ParseLibsvm(const DataFile& file, const v1::Libsvm& options,
                                     const LabelRule& rule) {
  const size_t features = options.features();
  if (features == 0) return absl::InvalidArgumentError("libsvm.features: is 0");
  std::vector<float> values;
  Examples examples{{1, 1, options.features()}, {}, {}};
  Lines lines(file.text());
  absl::string_view line;
  while (lines.Next(line)) {
    line = line.substr(0, line.find('#'));
    if (absl::StripAsciiWhitespace(line).empty()) continue;
    const std::string place = absl::StrCat(file.path, ":", lines.number());
    RETURN_IF_ERROR(CheckSize(examples.size() + 1, features, sizeof(float), place));
    values.resize(values.size() + features);
    float& label = examples.labels.emplace_back();
    const std::span row(values.data() + values.size() - features, features);
    RETURN_IF_ERROR(Annotate(ParseLine(line, rule, row, label), place));
  }
  if (examples.size() == 0) {
    return absl::InvalidArgumentError(absl::StrCat(file.path, ": holds no examples"));
  }
  examples.values = std::move(values);
  return examples;
}

}  // namespace leeway
