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
  // The column's name. Empty if the table has no line of names.
  std::string name;
  // The number of values of each kind. A missing value counts only in `missing`.
  uint64_t numbers = 0, texts = 0, missing = 0;
  // One of the texts that are not numbers, to quote in errors.
  std::string text;
  // The different values, as they are written. Once there are more than kCategoriesMax, no more are
  // collected.
  std::set<std::string> values = {};
  // Facts about the numbers.
  double least = 0, largest = 0;
  bool whole = true;
  // Whether each line's number is one more than the previous line's, as in an index.
  bool counts_up = true;

  bool few() const { return values.size() <= kCategoriesMax; }
  bool constant() const { return values.size() < 2; }
  // Returns true if the values look like classes: a few different texts, whole numbers from 0 or 1
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

// Reads the files `names`. Returns INVALID_ARGUMENT, with file and line, if a line has more or
// fewer values than the first line, or if the files have different column names.
absl::StatusOr<TableFacts> ReadTableFacts(const std::string& data_dir,
                                          const std::vector<std::string>& names,
                                          const TableForm& form);

}  // namespace leeway
