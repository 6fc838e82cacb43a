// Collects facts about the columns of a table from all of its lines.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "launcher/inspect/table_guess.h"

namespace leeway {

// The maximum number of different values in a column of categories.
inline constexpr size_t kCategoriesMax = 100;

struct ColumnFacts {
  // Empty if the table has no line of names.
  std::string name;
  // The number of values of each kind. A missing value counts only in `missing`.
  uint64_t numbers = 0, texts = 0, missing = 0;
  // An example of a text that is not a number, for errors.
  std::string text;
  // The different values, as they are written. Collecting ends when there are more than
  // kCategoriesMax.
  std::set<std::string> values = {};
  // Facts about the numbers.
  double least = 0, largest = 0;
  bool whole = true;
  // Whether the number in each line is one more than in the line before, as in an index.
  bool counts_up = true;

  bool few() const { return values.size() <= kCategoriesMax; }
  bool constant() const { return values.size() < 2; }
  // Whether the values are few different texts, or whole numbers 0, 1, 2 and so on, or 1, 2 and so
  // on, or -1 and 1.
  bool like_classes() const;
};

struct TableFacts {
  TableForm form;
  // The columns, in their order in the files.
  std::vector<ColumnFacts> columns;
  uint64_t lines = 0;
  // The texts that stand for a missing value.
  std::set<std::string> missing;
};

// Reads the files `names`. Returns INVALID_ARGUMENT, with file and line, if a line has another
// number of values than the first line, or if a file's first line has other names.
absl::StatusOr<TableFacts> ReadTableFacts(const std::string& data_dir,
                                          const std::vector<std::string>& names,
                                          const TableForm& form);

}  // namespace leeway
