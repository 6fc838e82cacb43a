// Which column of a table is the label, and what becomes of the others.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "launcher/inspect/table_facts.h"
#include "leeway/v1/job.pb.h"

namespace leeway {

struct TableChoice {
  // Without its files.
  v1::Csv csv;
  // Whether each feature is one value of a category.
  std::vector<bool> one_hot;
  // Of the features: values that are not there.
  uint64_t missing = 0;
  // For people: a line that says which column is the label, with the numbers of its texts; what is
  // left out, and why.
  std::string label;
  std::string left_out;
};

// `label` is a name or a number; empty: the column is guessed, where there is one that it must be.
// Else INVALID_ARGUMENT asks for it. A regression's label in particular shows by nothing.
absl::StatusOr<TableChoice> ChooseColumns(const TableFacts& facts, const std::string& label);

}  // namespace leeway
