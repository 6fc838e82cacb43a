// Tables: one example a line, with values separated by one character.
#pragma once

#include "absl/status/statusor.h"
#include "leeway/v1/job.pb.h"
#include "worker/data/data_file.h"
#include "worker/data/examples.h"
#include "worker/data/labels.h"

namespace leeway {

// Every line must have as many columns as the first one. The features are the columns in order,
// without the label's column and those to ignore. Blank lines are skipped. A missing value becomes
// NaN. INVALID_ARGUMENT names the file, the line and the column: its number from 0, as in
// label_column, and its name where the table has names.
absl::StatusOr<Examples> ParseCsv(DataFile file, const v1::Csv& options, const LabelRule& rule);

}  // namespace leeway
