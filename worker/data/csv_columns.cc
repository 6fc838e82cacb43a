#include "worker/data/csv_columns.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/job_key.h"
#include "common/status.h"
#include "worker/data/limits.h"
#include "worker/data/text.h"

namespace leeway {
namespace {

using Role = CsvColumn::Role;

constexpr size_t kShownNames = 30;

class ColumnPlanner {
 public:
  ColumnPlanner(const v1::Csv& options, const std::vector<std::string>& first,
                const std::string& place)
      : options_(options), first_(first), place_(place) {}

  absl::StatusOr<CsvColumns> Plan() {
    for (size_t i = 0; i < first_.size(); ++i) {
      plan_.columns.push_back({.place = absl::StrCat("column ", i)});
      if (named()) absl::StrAppend(&plan_.columns[i].place, " (", Shown(first_[i]), ")");
    }
    if (named()) RETURN_IF_ERROR(CheckNames());
    RETURN_IF_ERROR(PlanLabel());
    for (int i = 0; i < options_.ignore_size(); ++i) {
      RETURN_IF_ERROR(AtKey(Ignore(options_.ignore(i)), absl::StrCat("ignore.", i)));
    }
    if (named()) RETURN_IF_ERROR(CheckUnnamed());
    for (int i = 0; i < options_.categories_size(); ++i) {
      RETURN_IF_ERROR(
          AtKey(Categorize(options_.categories(i)), absl::StrCat("categories.", i, ".column")));
    }
    RETURN_IF_ERROR(CountFeatures());
    return std::move(plan_);
  }

 private:
  bool named() const { return options_.has_label(); }
  absl::Status Bad(absl::string_view what) const {
    return absl::InvalidArgumentError(absl::StrCat(place_, ": ", what));
  }
  static std::string Shown(const std::string& name) {
    return name.empty() ? "without a name" : Quote(name);
  }

  absl::Status CheckNames() const {
    std::map<absl::string_view, size_t> seen;
    for (size_t i = 0; i < first_.size(); ++i) {
      if (first_[i].empty()) continue;
      const auto [other, is_new] = seen.insert({first_[i], i});
      if (is_new) continue;
      return AtKey(Bad(absl::StrCat("columns ", other->second, " and ", i, " are both called ",
                                    Quote(first_[i]), "; give one of them another name")),
                   "label");
    }
    return absl::OkStatus();
  }

  // Returns an error for a feature without a name, such as the index that pandas writes.
  absl::Status CheckUnnamed() const {
    for (size_t i = 0; i < first_.size(); ++i) {
      if (!first_[i].empty() || plan_.columns[i].role != Role::kFeature) continue;
      return AtKey(Bad(absl::StrCat("column ", i,
                                    " has no name (pandas writes its index in this way): leave the "
                                    "column out with ignore: [\"\"], or name the column")),
                   "ignore");
    }
    return absl::OkStatus();
  }

  absl::StatusOr<size_t> FindNamed(const std::string& name) const {
    const auto found = std::find(first_.begin(), first_.end(), name);
    if (found != first_.end()) return static_cast<size_t>(found - first_.begin());
    const size_t shown = std::min(kShownNames, first_.size());
    return Bad(absl::StrCat(
        "no column is called ", Quote(name), "; this line names ",
        absl::StrJoin(first_.begin(), first_.begin() + static_cast<ptrdiff_t>(shown), ", ",
                      [](std::string* out, const std::string& each) { out->append(Quote(each)); }),
        shown < first_.size() ? absl::StrCat(" and ", first_.size() - shown, " more") : "",
        ". If the table has no line of names, set label_column, and use column numbers"));
  }

  absl::StatusOr<size_t> FindNumbered(int64_t number) const {
    const int64_t columns = static_cast<int64_t>(first_.size());
    if (number < columns && number >= -columns) {
      return static_cast<size_t>(number < 0 ? number + columns : number);
    }
    return Bad(absl::StrCat("this line has ", columns, " columns; column ", number,
                            " does not exist (the first is 0, the last is -1)"));
  }

  absl::StatusOr<size_t> Find(const std::string& name) const {
    if (named()) return FindNamed(name);
    int64_t number = 0;
    if (absl::SimpleAtoi(name, &number)) return FindNumbered(number);
    return Bad(
        absl::StrCat(Quote(name),
                     " is not the number of a column (columns are numbered from 0). If the first "
                     "line names the columns, give label: NAME instead of label_column"));
  }

  absl::Status PlanLabel() {
    const absl::StatusOr<size_t> label =
        named() ? FindNamed(options_.label()) : FindNumbered(options_.label_column());
    if (!label.ok()) return AtKey(label.status(), named() ? "label" : "label_column");
    plan_.label = *label;
    plan_.columns[*label].role = Role::kLabel;
    return absl::OkStatus();
  }

  absl::Status IgnoreColumn(CsvColumn& column) {
    if (column.role == Role::kLabel)
      return Bad(absl::StrCat(column.place, " is the label, which cannot be ignored"));
    if (column.role == Role::kIgnored) return Bad(absl::StrCat(column.place, " is named twice"));
    column.role = Role::kIgnored;
    return absl::OkStatus();
  }

  // The name "" stands for all columns without a name.
  absl::Status Ignore(const std::string& name) {
    ASSIGN_OR_RETURN(const size_t found, Find(name));
    for (size_t i = found; i < first_.size(); ++i) {
      const bool same = i == found || (named() && name.empty() && first_[i].empty());
      if (same) RETURN_IF_ERROR(IgnoreColumn(plan_.columns[i]));
    }
    return absl::OkStatus();
  }

  absl::Status Categorize(const v1::Categories& categories) {
    ASSIGN_OR_RETURN(const size_t found, Find(categories.column()));
    CsvColumn& column = plan_.columns[found];
    if (column.role == Role::kIgnored)
      return Bad(absl::StrCat(column.place, " is ignored, so it has no categories"));
    if (!column.categories.empty()) return Bad(absl::StrCat(column.place, " is named twice"));
    for (const std::string& value : categories.values()) {
      column.categories.insert({value, static_cast<uint32_t>(column.categories.size())});
    }
    if (column.role == Role::kLabel && options_.has_label_above()) {
      return Bad("label_above is for labels that are numbers; remove it");
    }
    column.one_hot =
        column.role == Role::kFeature && categories.encoding() == v1::CATEGORY_ENCODING_ONE_HOT;
    if (column.one_hot) values_[found] = &categories;
    return absl::OkStatus();
  }

  absl::Status CountFeatures() {
    for (size_t i = 0; i < first_.size(); ++i) {
      plan_.features += plan_.columns[i].features();
      if (plan_.features > kMaxElements) {
        return Bad(absl::StrCat("the table has more than ", kMaxElements, " features"));
      }
      if (named()) NameFeatures(i);
    }
    if (plan_.features > 0) return absl::OkStatus();
    return AtKey(Bad("all columns but the label are left out, so the examples have no features"),
                 "ignore");
  }

  void NameFeatures(size_t i) {
    if (plan_.columns[i].role != Role::kFeature) return;
    const auto values = values_.find(i);
    if (values == values_.end()) {
      plan_.names.push_back(first_[i]);
      return;
    }
    for (const std::string& value : values->second->values()) {
      plan_.names.push_back(absl::StrCat(first_[i], "=", value));
    }
  }

  const v1::Csv& options_;
  const std::vector<std::string>& first_;
  const std::string& place_;
  CsvColumns plan_;
  // The categories of the one-hot columns, by the index of the column.
  std::map<size_t, const v1::Categories*> values_;
};

}  // namespace

absl::StatusOr<CsvColumns> PlanCsvColumns(const v1::Csv& options,
                                          const std::vector<std::string>& first,
                                          const std::string& place) {
  return ColumnPlanner(options, first, place).Plan();
}

}  // namespace leeway
