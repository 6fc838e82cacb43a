// Tables with one example in each line. One character separates the values.
#pragma once

#include "absl/status/statusor.h"
#include "leeway/v1/job.pb.h"
#include "worker/data/data_file.h"
#include "worker/data/examples.h"
#include "worker/data/labels.h"

namespace leeway {

// Every line must have as many columns as the first line. The features are the columns in order,
// without the label's column and the ignored columns. Blank lines are skipped. A missing value
// becomes NaN. Returns INVALID_ARGUMENT, naming the file, the line and the column, if a line is not
// valid. A column is named by its number from 0, as in label_column, and by its name if the table
// has names.
absl::StatusOr<Examples> ParseCsv(DataFile file, const v1::Csv& options, const LabelRule& rule);

}  // namespace leeway
