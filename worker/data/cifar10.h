// The binary format of CIFAR-10: records of a label byte and 3 x 32 x 32 bytes, a plane a colour.
#pragma once

#include "absl/status/statusor.h"
#include "leeway/v1/job.pb.h"
#include "worker/data/data_file.h"
#include "worker/data/examples.h"
#include "worker/data/labels.h"

namespace leeway {

// Images become NHWC. INVALID_ARGUMENT names the file and the byte.
absl::StatusOr<Examples> ParseCifar10(DataFile file, const LabelRule& rule);

}  // namespace leeway
