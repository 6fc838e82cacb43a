// The text format of LIBSVM: `label index:value ...`, an example a line.
#pragma once

#include "absl/status/statusor.h"
#include "leeway/v1/job.pb.h"
#include "worker/data/data_file.h"
#include "worker/data/examples.h"
#include "worker/data/labels.h"

namespace leeway {

// Indices count from 1 and ascend. A feature that is not named is 0. Rows are stored densely. Blank
// lines are skipped, and so is all text after a '#'. INVALID_ARGUMENT names the file, the line and
// the feature.
absl::StatusOr<Examples> ParseLibsvm(DataFile file, const v1::Libsvm& options,
                                     const LabelRule& rule);

}  // namespace leeway
