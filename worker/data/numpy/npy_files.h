// Reads the files of a NumPy source: .npy files, or arrays of an .npz.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "leeway/v1/job.pb.h"
#include "worker/data/examples.h"
#include "worker/data/labels.h"

namespace leeway {

// Reads the source. The content of a file decides whether it is an .npz. If an .npz has only one
// array, the job need not name the array. Errors are at keys within the source.
absl::StatusOr<Examples> ReadNumpy(const v1::Numpy& source, const std::string& data_dir,
                                   const LabelRule& rule);

}  // namespace leeway
