// Tables: values separated by a character, an example a line.
#pragma once

#include "absl/status/statusor.h"
#include "leeway/v1/job.pb.h"
#include "worker/data/data_file.h"
#include "worker/data/examples.h"
#include "worker/data/labels.h"

namespace leeway {

// Every line has as many columns as the first; the features are the columns but the label's and
// those to ignore, in order. Blank lines are passed over. A missing value becomes NaN.
// INVALID_ARGUMENT names the file, the line and the column (from 0, as label_column counts, and its
// name where the table has names).
absl::StatusOr<Examples> ParseCsv(DataFile file, const v1::Csv& options, const LabelRule& rule);

}  // namespace leeway
