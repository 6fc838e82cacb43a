#include "worker/data/csv.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_replace.h"
#include "common/job_key.h"
#include "common/status.h"
#include "worker/data/csv_columns.h"
#include "worker/data/csv_fields.h"
#include "worker/data/labels.h"
#include "worker/data/text.h"

namespace leeway {
namespace {

// The strings that programs write for a missing value.
constexpr absl::string_view kNoValue[] = {"",     "NA",   "N/A", "NaN", "nan", "NULL",
                                          "null", "None", "?",   "-",   "."};

// Returns advice about a string where a number is required.
std::string Remedy(absl::string_view text) {
  if (std::find(std::begin(kNoValue), std::end(kNoValue), text) != std::end(kNoValue)) {
    return absl::StrCat("; if that is a missing value, set missing: '", text, "'");
  }
  double number = 0;
  if (absl::SimpleAtod(absl::StrReplaceAll(text, {{",", "."}}), &number)) {
    return text.find(',') == absl::string_view::npos ? "" : "; write numbers with a point";
  }
  return "; name a column of texts in categories or ignore (`leeway data FILE` prints them)";
}

class CsvParser {
 public:
  CsvParser(DataFile file, const v1::Csv& options, const LabelRule& rule)
      : file_(std::move(file)), options_(options), label_reader_(rule) {
    for (const std::string& text : options.missing()) {
      missing_.push_back(absl::StripAsciiWhitespace(text));
    }
  }

  absl::StatusOr<Examples> Parse() {
    if (options_.separator().size() != 1) {
      return AtKey(absl::InvalidArgumentError(
                       absl::StrCat(Quote(options_.separator()), " is not a single character")),
                   "separator");
    }
    // The first pass counts the lines, so that memory is allocated once, for exactly the examples
    // of the file.
    size_t count = 0;
    RETURN_IF_ERROR(ForEachLine([&](absl::string_view) {
      return CheckSize(++count, plan_.features, sizeof(float), file_.path);
    }));
    if (count == 0) {
      return absl::InvalidArgumentError(absl::StrCat(file_.path, ": has no examples"));
    }
    values_.reserve(count * plan_.features);
    labels_.reserve(count);
    RETURN_IF_ERROR(ForEachLine([&](absl::string_view line) { return AddLine(line); }));
    return Examples{shape_, std::move(values_), std::move(labels_), std::move(plan_.names),
                    label_reader_.negative()};
  }

 private:
  std::string Place() const { return absl::StrCat(file_.path, ":", line_); }
  absl::Status Bad(absl::string_view what) const {
    return absl::InvalidArgumentError(absl::StrCat(Place(), ": ", what));
  }
  absl::Status BadColumn(const CsvColumn& column, absl::string_view what) const {
    return Bad(absl::StrCat(column.place, ": ", what));
  }

  // Passes each line that has an example to `take`, and rewinds the file afterwards.
  absl::Status ForEachLine(absl::FunctionRef<absl::Status(absl::string_view)> take) {
    Lines lines(*file_.bytes, file_.path);
    absl::string_view line;
    while (true) {
      ASSIGN_OR_RETURN(const bool more, lines.Next(line));
      if (!more) return file_.bytes->Rewind();
      line_ = lines.number();
      if (line_ <= options_.skip_lines()) continue;
      if (absl::StripAsciiWhitespace(line).empty()) continue;
      if (plan_.columns.empty()) RETURN_IF_ERROR(Begin(line));
      if (line_ != line_of_names_) RETURN_IF_ERROR(take(line));
    }
  }

  // Plans the columns from the first line.
  absl::Status Begin(absl::string_view line) {
    absl::StatusOr<std::vector<std::string>> first = SplitCsvLine(line, options_.separator()[0]);
    if (!first.ok()) return Bad(first.status().message());
    if (first->size() < 2) {
      return AtKey(Bad(absl::StrCat("this line has one column, the label; is ",
                                    Quote(options_.separator()), " the separator?")),
                   "separator");
    }
    ASSIGN_OR_RETURN(plan_, PlanCsvColumns(options_, *first, Place()));
    if (options_.has_label()) line_of_names_ = line_;
    shape_ = {1, 1, static_cast<uint32_t>(plan_.features)};
    if (options_.shape().empty()) return absl::OkStatus();
    ASSIGN_OR_RETURN(
        shape_, MakeShape({options_.shape().data(), static_cast<size_t>(options_.shape_size())}));
    if (shape_.elements() == plan_.features) return absl::OkStatus();
    return AtKey(Bad(absl::StrCat("this line has ", plan_.features, " features, but ",
                                  DescribeShape(shape_), " needs ", shape_.elements())),
                 "shape");
  }

  absl::Status AddLine(absl::string_view line) {
    const size_t columns = plan_.columns.size();
    CsvFields fields(line, options_.separator()[0]);
    absl::string_view value;
    size_t count = 0;
    while (true) {
      const absl::StatusOr<bool> more = fields.Next(value);
      if (!more.ok()) return Bad(absl::StrCat("column ", count, ": ", more.status().message()));
      if (!*more) break;
      if (count < columns) RETURN_IF_ERROR(AddValue(plan_.columns[count], value));
      ++count;
    }
    if (count == columns) return absl::OkStatus();
    return Bad(absl::StrCat("this line has ", count, " columns, but the first line has ", columns));
  }

  bool IsMissing(absl::string_view value) const {
    return std::find(missing_.begin(), missing_.end(), value) != missing_.end();
  }

  absl::Status AddValue(const CsvColumn& column, absl::string_view value) {
    if (column.role == CsvColumn::Role::kIgnored) return absl::OkStatus();
    if (column.role == CsvColumn::Role::kLabel) return AddLabel(column, value);
    if (!missing_.empty() && IsMissing(value)) {
      values_.insert(values_.end(), column.features(), std::numeric_limits<float>::quiet_NaN());
    } else if (column.categories.empty()) {
      const absl::StatusOr<float> number = ParseFloat(value);
      if (!number.ok()) return NoNumber(column, value, number.status());
      values_.push_back(*number);
    } else {
      ASSIGN_OR_RETURN(const uint32_t category, CategoryOf(column, value));
      if (!column.one_hot) {
        values_.push_back(static_cast<float>(category));
      } else {
        values_.insert(values_.end(), column.categories.size(), 0.0f);
        *(values_.end() - static_cast<ptrdiff_t>(column.categories.size() - category)) = 1;
      }
    }
    return absl::OkStatus();
  }

  absl::Status NoNumber(const CsvColumn& column, absl::string_view value,
                        const absl::Status& status) const {
    const bool maybe_names = labels_.empty() && !options_.has_label();
    return BadColumn(
        column,
        absl::StrCat(status.message(), Remedy(value),
                     maybe_names ? "; if this line names the columns, give label: NAME" : ""));
  }

  absl::StatusOr<uint32_t> CategoryOf(const CsvColumn& column, absl::string_view value) const {
    const auto found = column.categories.find(value);
    if (found != column.categories.end()) return found->second;
    return BadColumn(
        column, absl::StrCat(
                    Quote(value),
                    " is not one of the column's categories: add it to categories, or to missing"));
  }

  absl::Status AddLabel(const CsvColumn& column, absl::string_view text) {
    if (IsMissing(text)) {
      return BadColumn(column, "the label is missing; remove the line to train without it");
    }
    double number = 0;
    if (column.categories.empty()) {
      const absl::StatusOr<double> parsed = ParseNumber(text);
      if (!parsed.ok()) return NoNumber(column, text, parsed.status());
      number = *parsed;
      if (options_.has_label_above()) number = number > options_.label_above() ? 1 : 0;
    } else {
      ASSIGN_OR_RETURN(number, CategoryOf(column, text));
    }
    const absl::StatusOr<float> label = label_reader_.Read(number);
    if (!label.ok()) return BadColumn(column, label.status().message());
    labels_.push_back(*label);
    return absl::OkStatus();
  }

  const DataFile file_;
  const v1::Csv& options_;
  LabelReader label_reader_;
  std::vector<absl::string_view> missing_;
  size_t line_ = 0;
  // The number of the line with the names of the columns. 0 if no line has names.
  size_t line_of_names_ = 0;
  // The plan of the columns. Empty until the first line is read.
  CsvColumns plan_;
  ImageShape shape_;
  std::vector<float> values_;
  std::vector<float> labels_;
};

}  // namespace

absl::StatusOr<Examples> ParseCsv(DataFile file, const v1::Csv& options, const LabelRule& rule) {
  return CsvParser(std::move(file), options, rule).Parse();
}

}  // namespace leeway
