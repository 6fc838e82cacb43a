// Chooses which column of a table is the label, and how the other columns are used.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "launcher/inspect/table_facts.h"
#include "leeway/v1/job.pb.h"

namespace leeway {

struct TableChoice {
  // The settings of the table, without its files.
  v1::Csv csv;
  // For each feature, whether it is one value of a category (one-hot).
  std::vector<bool> one_hot;
  // The number of missing values in the features.
  uint64_t missing = 0;
  // A line for people that says which column is the label. If the labels are texts, the line says
  // which number stands for which text.
  std::string label;
  // A line for people that says which columns are left out, and why.
  std::string left_out;
};

// Chooses the columns. `label` is the name or number of the label's column. If `label` is empty and
// only one column is possible, chooses that column. If several are possible, as in a regression,
// returns INVALID_ARGUMENT, which asks the user for the column.
absl::StatusOr<TableChoice> ChooseColumns(const TableFacts& facts, const std::string& label);

}  // namespace leeway
