// The binary formats of CIFAR-10 and CIFAR-100. A record has one or two label bytes and 3 x 32 x 32
// bytes, one plane for each colour.
#pragma once

#include "absl/status/statusor.h"
#include "leeway/v1/job.pb.h"
#include "worker/data/data_file.h"
#include "worker/data/examples.h"
#include "worker/data/labels.h"

namespace leeway {

// The images are returned as NHWC. INVALID_ARGUMENT names the file and the byte.
absl::StatusOr<Examples> ParseCifar10(DataFile file, const LabelRule& rule);
// The same for CIFAR-100, with the labels that `labels` selects.
absl::StatusOr<Examples> ParseCifar100(DataFile file, v1::Cifar100Labels labels,
                                       const LabelRule& rule);

}  // namespace leeway
