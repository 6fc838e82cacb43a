// The IDX format of MNIST: a magic number 0 0 TYPE DIMENSIONS, the dimensions as big-endian 32-bit
// numbers, then the elements, row-major. Only TYPE 8, unsigned bytes, is supported.
#pragma once

#include "absl/status/statusor.h"
#include "leeway/v1/job.pb.h"
#include "worker/data/data_file.h"
#include "worker/data/examples.h"
#include "worker/data/labels.h"

namespace leeway {

// Reads examples. `images` has 2 (n x features), 3 (n x height x width) or 4 (n x height x width x
// channels) dimensions; `labels` has 1. Returns INVALID_ARGUMENT, naming the file and the byte, if
// a file is not valid.
absl::StatusOr<Examples> ParseIdx(DataFile images, DataFile labels, const LabelRule& rule);

}  // namespace leeway
