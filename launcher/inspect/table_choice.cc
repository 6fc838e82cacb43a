#include "launcher/inspect/table_choice.h"

#include <algorithm>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/status.h"
#include "worker/data/text.h"

namespace leeway {
namespace {

constexpr absl::string_view kLabelNames[] = {"label",   "labels", "target",  "targets", "class",
                                             "classes", "y",      "outcome", "species"};
constexpr absl::string_view kIndexNames[] = {"", "id", "index", "unnamed: 0"};
// The fewest lines with which a column that counts up is considered an index.
constexpr uint64_t kIndexLines = 10;
constexpr size_t kAskedNames = 30;
constexpr size_t kShownTexts = 20;

template <typename Names>
bool IsOneOf(const Names& names, const std::string& name) {
  return std::find(std::begin(names), std::end(names), absl::AsciiStrToLower(name)) !=
         std::end(names);
}

class Chooser {
 public:
  explicit Chooser(const TableFacts& facts) : facts_(facts) {
    std::set<std::string> names;
    for (const ColumnFacts& column : facts.columns) {
      named_ = named_ && (column.name.empty() || names.insert(column.name).second);
    }
  }

  absl::StatusOr<TableChoice> Choose(const std::string& label) {
    ASSIGN_OR_RETURN(label_, label.empty() ? GuessLabel() : FindLabel(label));
    // The job cannot refer to a column by an empty name.
    named_ = named_ && !facts_.columns[label_].name.empty();
    v1::Csv& csv = choice_.csv;
    csv.set_separator(std::string(1, facts_.form.separator));
    if (facts_.form.named && !named_) csv.set_skip_lines(1);
    if (named_) {
      csv.set_label(facts_.columns[label_].name);
    } else if (label_ + 1 < facts_.columns.size()) {
      csv.set_label_column(static_cast<int32_t>(label_));
    }
    for (const std::string& text : facts_.missing) csv.add_missing(text);
    for (size_t i = 0; i < facts_.columns.size(); ++i) RETURN_IF_ERROR(AddColumn(i));
    return std::move(choice_);
  }

 private:
  std::string Reference(size_t i) const {
    return named_ ? facts_.columns[i].name : absl::StrCat(i);
  }

  // Returns the reason why the column is not a feature, or an empty string if the column is a
  // feature.
  std::string WhyLeftOut(size_t i) const {
    const ColumnFacts& column = facts_.columns[i];
    const bool index_name = facts_.form.named && IsOneOf(kIndexNames, column.name);
    const bool all_differ = !column.few() || column.values.size() == facts_.lines;
    if (index_name && all_differ) return "an index";
    if (facts_.form.named && column.name.empty()) return "it has no name";
    if (i == 0 && column.counts_up && facts_.lines >= kIndexLines) return "it counts the lines";
    if (column.numbers + column.texts == 0) return "it is empty";
    if (column.texts > 0 && !column.few()) {
      return absl::StrCat("more than ", kCategoriesMax, " different texts");
    }
    return "";
  }

  absl::Status Ask() const {
    std::vector<std::string> names;
    for (size_t i = 0; i < std::min(facts_.columns.size(), kAskedNames); ++i) {
      names.push_back(Quote(facts_.columns[i].name));
    }
    if (facts_.columns.size() > names.size()) names.push_back("and so on");
    const bool by_name = facts_.form.named && named_;
    return absl::InvalidArgumentError(absl::StrCat(
        "which column is the label? The table does not show it. Specify --label, with ",
        by_name
            ? absl::StrCat("one of these names: ", absl::StrJoin(names, ", "))
            : absl::StrCat("a number from 0, the first column, to ", facts_.columns.size() - 1)));
  }

  absl::StatusOr<size_t> GuessLabel() const {
    std::optional<size_t> by_name;
    for (size_t i = 0; i < facts_.columns.size() && facts_.form.named; ++i) {
      if (!IsOneOf(kLabelNames, facts_.columns[i].name)) continue;
      if (by_name.has_value()) return Ask();
      by_name = i;
    }
    if (by_name.has_value()) return *by_name;
    // If the columns have names, ask: a person understands the names, but the program cannot choose
    // by them.
    if (facts_.form.named && named_) return Ask();
    return GuessWithoutNames();
  }

  absl::StatusOr<size_t> GuessWithoutNames() const {
    const size_t last = facts_.columns.size() - 1;
    const size_t first = WhyLeftOut(0).empty() ? 0 : 1;
    const bool first_may_be = first < last && facts_.columns[first].like_classes();
    if (facts_.columns[last].like_classes()) return first_may_be ? Ask() : Found(last);
    if (first_may_be) return facts_.columns[last].constant() ? Found(first) : Ask();
    // Numbers in the last column are the label of a regression, unless another column may have the
    // classes.
    const bool texts = std::any_of(facts_.columns.begin(), facts_.columns.end(),
                                   [](const ColumnFacts& column) { return column.texts > 0; });
    return texts || facts_.columns[last].constant() ? Ask() : Found(last);
  }
  static absl::StatusOr<size_t> Found(size_t column) { return column; }

  absl::StatusOr<size_t> FindLabel(const std::string& label) const {
    for (size_t i = 0; i < facts_.columns.size() && facts_.form.named; ++i) {
      if (facts_.columns[i].name == label) return i;
    }
    const int64_t columns = static_cast<int64_t>(facts_.columns.size());
    int64_t number = 0;
    if (!absl::SimpleAtoi(label, &number) || number >= columns || number < -columns) {
      return Annotate(Ask(),
                      absl::StrCat("--label ", Quote(label), ": the table has no such column"));
    }
    return static_cast<size_t>(number < 0 ? number + columns : number);
  }

  absl::Status AddColumn(size_t i) {
    const ColumnFacts& column = facts_.columns[i];
    if (column.texts > 0 && IsDecimal(column.text)) {
      return absl::InvalidArgumentError(
          absl::StrCat("column ", Reference(i), ": ", Quote(column.text),
                       " has a comma: write numbers with a point (pandas: read_csv(decimal=','))"));
    }
    if (i == label_) return AddLabel(column);
    if (const std::string why = WhyLeftOut(i); !why.empty()) {
      choice_.csv.add_ignore(Reference(i));
      absl::StrAppend(&choice_.left_out, choice_.left_out.empty() ? "Left out: " : ", ",
                      Quote(Reference(i)), " (", why, ")");
      return absl::OkStatus();
    }
    choice_.missing += column.missing;
    if (column.texts > 0) AddCategories(i, {column.values.begin(), column.values.end()});
    choice_.one_hot.resize(choice_.one_hot.size() + (column.texts > 0 ? column.values.size() : 1),
                           column.texts > 0);
    return absl::OkStatus();
  }

  void AddCategories(size_t i, const std::vector<std::string>& values) {
    v1::Categories& categories = *choice_.csv.add_categories();
    categories.set_column(named_ ? Reference(i) : absl::StrCat(i));
    for (const std::string& value : values) categories.add_values(value);
  }

  absl::Status AddLabel(const ColumnFacts& column) {
    if (column.texts > 0 && !column.few()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "column ", Reference(label_), " has more than ", kCategoriesMax,
          " different texts, such as ", Quote(column.text), ": these are not classes"));
    }
    std::vector<std::string> values(column.values.begin(), column.values.end());
    const bool three = column.whole && column.least == -1 && column.largest == 1 &&
                       values.size() == 3 && column.texts == 0;
    // -1, 0 and 1 are three classes. They are mapped to numbers from 0 on, because no loss accepts
    // them as they are.
    if (three) {
      std::sort(values.begin(), values.end(), [](const std::string& a, const std::string& b) {
        return *ParseNumber(a) < *ParseNumber(b);
      });
    }
    choice_.label = absl::StrCat("Label: column ", Quote(Reference(label_)));
    if (column.texts > 0 || three) {
      AddCategories(label_, values);
      for (size_t i = 0; i < std::min(values.size(), kShownTexts); ++i) {
        absl::StrAppend(&choice_.label, i == 0 ? "; " : ", ", Quote(values[i]), " is ", i);
      }
    }
    absl::StrAppend(&choice_.label, "\n");
    return absl::OkStatus();
  }

  const TableFacts& facts_;
  // Whether the job refers to columns by their names.
  bool named_ = facts_.form.named;
  size_t label_ = 0;
  TableChoice choice_;
};

}  // namespace

absl::StatusOr<TableChoice> ChooseColumns(const TableFacts& facts, const std::string& label) {
  if (facts.columns.size() < 2 || facts.lines == 0) {
    return absl::InvalidArgumentError("the table has no examples");
  }
  return Chooser(facts).Choose(label);
}

}  // namespace leeway
