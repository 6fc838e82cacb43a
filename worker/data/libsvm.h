// The text format of LIBSVM: `label index:value ...`, with one example in each line.
#pragma once

#include "absl/status/statusor.h"
#include "leeway/v1/job.pb.h"
#include "worker/data/data_file.h"
#include "worker/data/examples.h"
#include "worker/data/labels.h"

namespace leeway {

// Reads examples. Indices count from 1 and ascend. A feature that a line does not name is 0. In
// memory each row has all features. Blank lines and all text after a '#' are skipped. Returns
// INVALID_ARGUMENT, naming the file, the line and the feature, if a line is not valid.
absl::StatusOr<Examples> ParseLibsvm(DataFile file, const v1::Libsvm& options,
                                     const LabelRule& rule);

}  // namespace leeway
