#include "worker/data/csv.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "absl/strings/ascii.h"
#include "common/status.h"
#include "worker/data/labels.h"
#include "worker/data/limits.h"
#include "worker/data/text.h"

namespace leeway {
namespace {

class CsvParser {
 public:
  CsvParser(const DataFile& file, const v1::Csv& options, const LabelRule& rule)
      : file_(file), options_(options), rule_(rule), lines_(file.text()) {
    if (options.has_missing()) missing_ = absl::StripAsciiWhitespace(options.missing());
  }

  absl::StatusOr<Examples> Parse() {
    if (options_.separator().size() != 1) {
      return absl::InvalidArgumentError(absl::StrCat("csv.separator: ", Quote(options_.separator()),
                                                     " where one character belongs"));
    }
    absl::string_view line;
    while (lines_.Next(line)) {
      if (lines_.number() <= options_.skip_lines()) continue;
      if (absl::StripAsciiWhitespace(line).empty()) continue;
      if (columns_ == 0) RETURN_IF_ERROR(Begin(line));
      RETURN_IF_ERROR(AddLine(line));
    }
    if (labels_.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(file_.path, ": holds no examples"));
    }
    return Examples{shape_, std::move(values_), std::move(labels_)};
  }

 private:
  absl::Status Bad(absl::string_view what) const {
    return absl::InvalidArgumentError(absl::StrCat(file_.path, ":", lines_.number(), ": ", what));
  }
  absl::Status BadColumn(size_t column, absl::string_view what) const {
    return Bad(absl::StrCat("column ", column, ": ", what));
  }

  // What the first line settles.
  absl::Status Begin(absl::string_view line) {
    const char separator = options_.separator()[0];
    columns_ = 1 + std::count(line.begin(), line.end(), separator);
    const int64_t columns = static_cast<int64_t>(columns_);
    const int64_t label = options_.label_column();
    if (label >= columns || label < -columns) {
      return Bad(absl::StrCat("label_column ", label, " of a line of ", columns, " columns"));
    }
    label_column_ = static_cast<size_t>(label < 0 ? label + columns : label);
    if (columns_ < 2) {
      return Bad(absl::StrCat("one column, the label; is ", Quote(options_.separator()),
                              " the separator?"));
    }
    if (columns_ - 1 > kMaxElements)
      return Bad(absl::StrCat("more than ", kMaxElements, " features"));
    if (options_.shape().empty()) {
      shape_ = {1, 1, static_cast<uint32_t>(columns_ - 1)};
      return absl::OkStatus();
    }
    ASSIGN_OR_RETURN(
        shape_, MakeShape({options_.shape().data(), static_cast<size_t>(options_.shape_size())}));
    if (shape_.elements() == columns_ - 1) return absl::OkStatus();
    return Bad(absl::StrCat(columns_ - 1, " features, but csv.shape is ", DescribeShape(shape_)));
  }

  absl::Status AddLine(absl::string_view line) {
    const char separator = options_.separator()[0];
    size_t column = 0;
    for (size_t start = 0; start <= line.size(); ++column) {
      const size_t end = std::min(line.find(separator, start), line.size());
      if (column < columns_) RETURN_IF_ERROR(AddValue(column, line.substr(start, end - start)));
      start = end + 1;
    }
    if (column != columns_) {
      return Bad(absl::StrCat(column, " columns where the first line has ", columns_));
    }
    return CheckSize(labels_.size(), shape_.elements(), sizeof(float), file_.path);
  }

  absl::Status AddValue(size_t column, absl::string_view text) {
    const bool missing = missing_.has_value() && absl::StripAsciiWhitespace(text) == *missing_;
    if (column == label_column_) {
      if (missing) return BadColumn(column, "the label is missing");
      return AddLabel(text);
    }
    if (missing) {
      values_.push_back(std::numeric_limits<float>::quiet_NaN());
      return absl::OkStatus();
    }
    absl::StatusOr<float> value = ParseFloat(text);
    if (!value.ok()) return BadColumn(column, value.status().message());
    values_.push_back(*value);
    return absl::OkStatus();
  }

  absl::Status AddLabel(absl::string_view text) {
    absl::StatusOr<double> number = ParseNumber(text);
    if (!number.ok()) return BadColumn(label_column_, number.status().message());
    if (options_.has_label_above()) *number = *number > options_.label_above() ? 1 : 0;
    absl::StatusOr<float> label = CheckLabel(*number, rule_);
    if (!label.ok()) return BadColumn(label_column_, label.status().message());
    labels_.push_back(*label);
    return absl::OkStatus();
  }

  const DataFile& file_;
  const v1::Csv& options_;
  const LabelRule rule_;
  std::optional<absl::string_view> missing_;
  Lines lines_;
  size_t columns_ = 0;  // 0 before the first line
  size_t label_column_ = 0;
  ImageShape shape_;
  std::vector<float> values_;
  std::vector<float> labels_;
};

}  // namespace

absl::StatusOr<Examples> ParseCsv(const DataFile& file, const v1::Csv& options,
                                  const LabelRule& rule) {
  return CsvParser(file, options, rule).Parse();
}

}  // namespace leeway
