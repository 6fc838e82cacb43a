// The binary formats of CIFAR-10 and CIFAR-100. A record has one or two label bytes and 3 x 32 x 32
// bytes of pixels, with one plane for each colour.
#pragma once

#include "absl/status/statusor.h"
#include "leeway/v1/job.pb.h"
#include "worker/data/data_file.h"
#include "worker/data/examples.h"
#include "worker/data/labels.h"

namespace leeway {

// Reads CIFAR-10. The images are returned as NHWC. Returns INVALID_ARGUMENT, naming the file and
// the byte, if the file is not valid.
absl::StatusOr<Examples> ParseCifar10(DataFile file, const LabelRule& rule);
// Reads CIFAR-100, with the labels that `labels` selects. Returns the same errors as ParseCifar10.
absl::StatusOr<Examples> ParseCifar100(DataFile file, v1::Cifar100Labels labels,
                                       const LabelRule& rule);

}  // namespace leeway
