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
  // By feature: whether the feature stands for one value of a category.
  std::vector<bool> one_hot;
  // The number of missing values in the features.
  uint64_t missing = 0;
  // A line for people that says which column is the label, with the numbers that stand for its
  // texts.
  std::string label;
  // A line for people that says which columns are left out, and why.
  std::string left_out;
};

// `label` is a name or a number. If `label` is empty, the column is guessed if only one column is
// possible. Otherwise INVALID_ARGUMENT asks for the column, because nothing shows which column is
// the label of a regression.
absl::StatusOr<TableChoice> ChooseColumns(const TableFacts& facts, const std::string& label);

}  // namespace leeway
