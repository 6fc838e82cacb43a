// Chooses which column of a table is the label, and what becomes of the others.
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
  // By feature: whether it is one value of a category.
  std::vector<bool> one_hot;
  // The number of missing values in the features.
  uint64_t missing = 0;
  // For people: a line that says which column is the label, with the numbers that stand for its
  // texts; and what is left out, and why.
  std::string label;
  std::string left_out;
};

// `label` is a name or a number. If it is empty, the column is guessed where only one is possible.
// Otherwise INVALID_ARGUMENT asks for it: nothing shows which column is the label of a regression.
absl::StatusOr<TableChoice> ChooseColumns(const TableFacts& facts, const std::string& label);

}  // namespace leeway
