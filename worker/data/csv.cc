#include "worker/data/csv.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/ascii.h"
#include "common/job_key.h"
#include "common/status.h"
#include "worker/data/labels.h"
#include "worker/data/limits.h"
#include "worker/data/text.h"

namespace leeway {
namespace {

class CsvParser {
 public:
  CsvParser(DataFile file, const v1::Csv& options, const LabelRule& rule)
      : file_(std::move(file)), options_(options), rule_(rule) {
    if (options.has_missing()) missing_ = absl::StripAsciiWhitespace(options.missing());
  }

  absl::StatusOr<Examples> Parse() {
    if (options_.separator().size() != 1) {
      return AtKey(absl::InvalidArgumentError(
                       absl::StrCat(Quote(options_.separator()), " where one character belongs")),
                   "separator");
    }
    // Once to count them, so that memory is taken once, and for no more than there is.
    size_t count = 0;
    RETURN_IF_ERROR(ForEachLine([&](absl::string_view line) -> absl::Status {
      if (columns_ == 0) RETURN_IF_ERROR(Begin(line));
      return CheckSize(++count, shape_.elements(), sizeof(float), file_.path);
    }));
    if (count == 0) {
      return absl::InvalidArgumentError(absl::StrCat(file_.path, ": holds no examples"));
    }
    values_.reserve(count * shape_.elements());
    labels_.reserve(count);
    RETURN_IF_ERROR(ForEachLine([&](absl::string_view line) { return AddLine(line); }));
    return Examples{shape_, std::move(values_), std::move(labels_)};
  }

 private:
  absl::Status Bad(absl::string_view what) const {
    return absl::InvalidArgumentError(absl::StrCat(file_.path, ":", line_, ": ", what));
  }
  absl::Status BadColumn(size_t column, absl::string_view what) const {
    return Bad(absl::StrCat("column ", column, ": ", what));
  }

  // The lines that hold examples. Leaves the file at its start.
  absl::Status ForEachLine(absl::FunctionRef<absl::Status(absl::string_view)> take) {
    Lines lines(*file_.bytes, file_.path);
    absl::string_view line;
    while (true) {
      ASSIGN_OR_RETURN(const bool more, lines.Next(line));
      if (!more) return file_.bytes->Rewind();
      line_ = lines.number();
      if (line_ <= options_.skip_lines()) continue;
      if (!absl::StripAsciiWhitespace(line).empty()) RETURN_IF_ERROR(take(line));
    }
  }

  // What the first line settles.
  absl::Status Begin(absl::string_view line) {
    const char separator = options_.separator()[0];
    columns_ = 1 + std::count(line.begin(), line.end(), separator);
    const int64_t columns = static_cast<int64_t>(columns_);
    const int64_t label = options_.label_column();
    if (label >= columns || label < -columns) {
      return AtKey(Bad(absl::StrCat("this line has ", columns, " columns; there is no column ",
                                    label, " (the first is 0, the last is -1)")),
                   "label_column");
    }
    label_column_ = static_cast<size_t>(label < 0 ? label + columns : label);
    if (columns_ < 2) {
      return AtKey(Bad(absl::StrCat("this line has one column, the label; is ",
                                    Quote(options_.separator()), " the separator?")),
                   "separator");
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
    return AtKey(Bad(absl::StrCat("this line has ", columns_ - 1, " features, where ",
                                  DescribeShape(shape_), " are ", shape_.elements())),
                 "shape");
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
    return absl::OkStatus();
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

  const DataFile file_;
  const v1::Csv& options_;
  const LabelRule rule_;
  std::optional<absl::string_view> missing_;
  size_t line_ = 0;
  size_t columns_ = 0;  // 0 before the first line
  size_t label_column_ = 0;
  ImageShape shape_;
  std::vector<float> values_;
  std::vector<float> labels_;
};

}  // namespace

absl::StatusOr<Examples> ParseCsv(DataFile file, const v1::Csv& options, const LabelRule& rule) {
  return CsvParser(std::move(file), options, rule).Parse();
}

}  // namespace leeway
