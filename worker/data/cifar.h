// The binary formats of CIFAR-10 and CIFAR-100: records of one or two label bytes and 3 x 32 x 32
// bytes, a plane a colour.
#pragma once

#include "absl/status/statusor.h"
#include "leeway/v1/job.pb.h"
#include "worker/data/data_file.h"
#include "worker/data/examples.h"
#include "worker/data/labels.h"

namespace leeway {

// Images become NHWC. INVALID_ARGUMENT names the file and the byte.
absl::StatusOr<Examples> ParseCifar10(DataFile file, const LabelRule& rule);
// The same, with the label that is asked for.
absl::StatusOr<Examples> ParseCifar100(DataFile file, v1::Cifar100Labels labels,
                                       const LabelRule& rule);

}  // namespace leeway
