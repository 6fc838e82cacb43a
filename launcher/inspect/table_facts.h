// What the columns of a table hold, by all of its lines.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "launcher/inspect/table_guess.h"

namespace leeway {

// Different values of a column of categories, at most.
inline constexpr size_t kCategoriesMax = 100;

struct ColumnFacts {
  // Empty where no line has names.
  std::string name;
  // Values of each kind. What is no value belongs to none but `missing`.
  uint64_t numbers = 0, texts = 0, missing = 0;
  // A text of each kind that is no number, for errors.
  std::string text;
  // The different values, as they are written; no more once they are more than kCategoriesMax.
  std::set<std::string> values = {};
  // Of the numbers.
  double least = 0, largest = 0;
  bool whole = true;
  // Each line has one more than the line before it: an index.
  bool counts_up = true;

  bool few() const { return values.size() <= kCategoriesMax; }
  bool constant() const { return values.size() < 2; }
  // Texts of few kinds, or whole numbers 0, 1, 2 and so on, or 1, 2 and so on, or -1 and 1.
  bool like_classes() const;
};

struct TableFacts {
  TableForm form;
  // As the files say it.
  std::vector<ColumnFacts> columns;
  uint64_t lines = 0;
  // The texts that stand for no value.
  std::set<std::string> missing;
};

// Of the files `names`. INVALID_ARGUMENT, with file and line, for lines of other lengths than the
// first, and for files whose first lines have other names.
absl::StatusOr<TableFacts> ReadTableFacts(const std::string& data_dir,
                                          const std::vector<std::string>& names,
                                          const TableForm& form);

}  // namespace leeway
